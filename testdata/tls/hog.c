/* SPDX-License-Identifier: Apache-2.0 */
/* A library that leaves nothing of the static surplus that glibc keeps for others (512 bytes). */
char *hog(void);

char *hog(void)
{
	static __thread char block[496];

	return block;
}
