/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel do the block programs run on in a unit test? One that has only what all kernels have, and a pointer from
 * a request to its disk. */
#pragma once

#include <stddef.h>
#include <string.h>

#define bpf_core_field_exists(field) (strstr(#field, "___") == NULL || strstr(#field, "rq_disk") != NULL)
#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_enum_value(type, value) ((value) + 8) /* flags lie above the operation */
#define bpf_core_type_id_kernel(type) 0
