/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/empty.c - an empty program: the cost of an exec
 */
int main(void)
{
	return 0;
}
