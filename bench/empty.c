/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/empty.c - the least that a C program can do: what an exec costs by itself
 */
int main(void)
{
	return 0;
}
