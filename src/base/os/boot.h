/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/boot.h - which boot of the kernel this is
 */
#ifndef BASE_OS_BOOT_H
#define BASE_OS_BOOT_H

#define BOOT_ID 37 /* with the NUL */

/* Return: a text that differs after a reboot; "" if it cannot be read */
const char *boot_id(void);

#endif
