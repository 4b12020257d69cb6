/* SPDX-License-Identifier: MIT */
/* Whether the test is built with the address sanitizer: PM_SANITIZED is 1 or 0. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define PM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PM_SANITIZED 1
#endif
#endif
#if !defined(PM_SANITIZED)
#define PM_SANITIZED 0
#endif
