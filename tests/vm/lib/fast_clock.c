// SPDX-License-Identifier: Apache-2.0
// How does a guest make hours of history in minutes? With this preloaded, a program's wall clock runs
// SSDPULSE_TIME_SCALE times as fast as the host's from SSDPULSE_TIME_SCALE_FROM (seconds since 1970) on. Every other
// clock is unchanged: what took a second is still measured as a second.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

enum { BILLION = 1000000000 };

static void now_scaled(struct timespec* now) {
  const char* scale = getenv("SSDPULSE_TIME_SCALE");
  const char* from = getenv("SSDPULSE_TIME_SCALE_FROM");
  if (scale == NULL || from == NULL) {
    return;
  }
  const long long times = atoll(scale);
  const long long begin = atoll(from);
  const long long since = ((long long)now->tv_sec - begin) * BILLION + now->tv_nsec;
  if (since > 0 && times > 0) {
    const long long scaled = since * times;
    now->tv_sec = (time_t)(begin + scaled / BILLION);
    now->tv_nsec = (long)(scaled % BILLION);
  }
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) {
    real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  }
  const int result = real(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) {
    now_scaled(now);
  }
  return result;
}

time_t time(time_t* result) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict result, void* restrict zone) {
  struct timespec now = {0, 0};
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  result->tv_sec = now.tv_sec;
  result->tv_usec = now.tv_nsec / 1000;
  return 0;
}
