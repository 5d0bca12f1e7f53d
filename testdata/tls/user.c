/* SPDX-License-Identifier: Apache-2.0 */
/* Uses the variable of variable.c without defining it: an undefined symbol, and relocations against it. */
extern __thread void *custom_labels_current_set;

void *user_address(void);

void *user_address(void)
{
	return &custom_labels_current_set;
}
