/* SPDX-License-Identifier: Apache-2.0 */
/* Two versions of the variable, of which V2 is the default. Link with versioned.map. */
__thread long padding[5] = { 1 };
__thread long variable_v1 = 1;
__thread long variable_v2 = 2;

__asm__(".symver variable_v1, custom_labels_current_set@V1");
__asm__(".symver variable_v2, custom_labels_current_set@@V2");

long *variable_address(void);

long *variable_address(void)
{
	return &variable_v2;
}
