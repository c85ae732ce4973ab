/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can a process do in here? Tries what a sandbox should refuse, one line each: "NAME ANSWER", where the answer is
 * "ok", the name of the error, or what was found. It is linked statically, for sandboxes that have no libraries.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char* scratch; /* a writable directory, if there is one */

static void say(const char* name, long result) { printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno)); }

static void try_open(const char* name, const char* path, int flags) {
  int fd = open(path, flags, 0600);
  say(name, fd);
  if (fd >= 0) close(fd);
  if (fd >= 0 && (flags & O_EXCL)) unlink(path);
}

static void try_files(void) {
  const int create = O_WRONLY | O_CREAT | O_EXCL;
  try_open("write_usr", "/usr/lib/tried", create);
  try_open("write_etc", "/etc/ssdpulse/tried", create);
  try_open("write_state", "/var/lib/ssdpulse/tried", create);
  try_open("write_runtime", "/run/ssdpulse/tried", create);
  try_open("write_sysctl", "/proc/sys/kernel/panic", O_WRONLY);
  try_open("write_sysfs", "/sys/kernel/mm/ksm/run", O_WRONLY);
  try_open("write_cgroup", "/sys/fs/cgroup/cgroup.procs", O_WRONLY);
  try_open("read_root_home", "/root/.profile", O_RDONLY);
  try_open("read_below_home", "/home/.disk/file", O_RDONLY);
  try_open("write_home", "/home/.tried", create);
  try_open("read_host_tmp", "/tmp/script", O_RDONLY);
  try_open("read_passwd", "/etc/passwd", O_RDONLY);
  try_open("read_shadow", "/etc/shadow", O_RDONLY);
  try_open("read_kcore", "/proc/kcore", O_RDONLY);
  try_open("read_process_1", "/proc/1/status", O_RDONLY);
  try_open("read_uptime", "/proc/uptime", O_RDONLY);
  /* What tells of waits above the drives. */
  try_open("read_pressure", "/proc/pressure/io", O_RDONLY);
  try_open("read_vmstat", "/proc/vmstat", O_RDONLY);
  try_open("read_cgroup_pressure", "/sys/fs/cgroup/system.slice/io.pressure", O_RDONLY);
  try_open("read_cgroup_limits", "/sys/fs/cgroup/system.slice/io.max", O_RDONLY);
  struct statvfs space;
  say("ask_for_room", statvfs("/", &space));
  try_open("open_kmsg", "/dev/kmsg", O_RDONLY);
  try_open("open_mem", "/dev/mem", O_RDONLY);
  try_open("open_nvme_controller", "/dev/nvme0", O_RDONLY);
  try_open("open_nvme_disk", "/dev/nvme0n1", O_RDONLY);
  try_open("open_null", "/dev/null", O_RDWR);
  try_open("run_another_program", "/bin/sh", O_RDONLY);
}

static void try_in_scratch(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/tried", scratch);
  say("make_device_node", mknod(path, S_IFBLK | 0600, makedev(259, 0)));
  unlink(path);
  int fd = open(path, O_WRONLY | O_CREAT, 0777);
  struct stat found;
  if (fd >= 0 && fstat(fd, &found) == 0) printf("mode_of_a_new_file %o\n", found.st_mode & 0777);
  say("make_set_uid_file", fd < 0 ? fd : fchmod(fd, 04700));
  if (fd >= 0) close(fd);
  unlink(path);
}

static int new_user_namespace(void) { return unshare(CLONE_NEWUSER); }
static int trace_me(void) { return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL); }

/* A process in a user namespace of its own has every right there; a traced process stops for its parent. */
static void try_in_child(const char* name, int (*attempt)(void)) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(attempt() == 0 ? 0 : errno);
  waitpid(child, &status, 0);
  errno = WEXITSTATUS(status);
  say(name, -errno);
}

/* A process that makes a system call of another architecture may be killed for it. */
static void try_32_bit(void) {
#ifdef __x86_64__
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    long result = 20; /* getpid */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    _exit(result < 0 ? (int)-result : 0);
  }
  waitpid(child, &status, 0);
  errno = WEXITSTATUS(status);
  if (WIFSIGNALED(status))
    printf("call_of_32_bit SIG%s\n", sigabbrev_np(WTERMSIG(status)));
  else
    say("call_of_32_bit", -errno);
#endif
}

static void try_calls(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  say("set_clock", clock_settime(CLOCK_REALTIME, &now));
  say("set_host_name", sethostname("tried", 5));
  say("load_module", syscall(SYS_init_module, "", 0, ""));
  say("read_kernel_log", klogctl(3, (char[64]){0}, 64));
  /* Mounts made here must not be visible outside. */
  say("new_mount_namespace", unshare(CLONE_NEWNS));
  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
  say("mount", mount("none", scratch, "tmpfs", 0, NULL));
  say("personality", personality(PER_LINUX32) == -1 ? -1 : 0);
  say("realtime", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}));
  try_in_child("trace_a_process", trace_me);
  say("add_key", syscall(SYS_add_key, "user", "tried", "x", 1, -3));
  say("lock_memory", mlockall(MCL_CURRENT));
  say("raise_priority", setpriority(PRIO_PROCESS, 0, -5));
  say("become_root", setuid(0));
  say("swap_on", syscall(SYS_swapon, scratch, 0));
  say("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
  union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
  say("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("make_memory_executable", mprotect(page, 4096, PROT_READ | PROT_EXEC));
  say("map_writable_and_executable",
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
}

static void try_sockets(void) {
  static const struct {
    const char* name;
    int family;
  } families[] = {{"socket_unix", AF_UNIX},
                  {"socket_inet", AF_INET},
                  {"socket_inet6", AF_INET6},
                  {"socket_netlink", AF_NETLINK},
                  {"socket_packet", AF_PACKET}};
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    say(families[i].name, socket(families[i].family, families[i].family == AF_NETLINK ? SOCK_RAW : SOCK_DGRAM, 0));
  }
}

static void tell_file(const char* name, const char* path, const char* field) {
  char line[256];
  FILE* file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, field, strlen(field)) != 0) continue;
    char* value = line + strlen(field);
    value += strspn(value, ": \t");
    value[strcspn(value, "\n\t")] = '\0';
    printf("%s %s\n", name, value);
  }
  if (file != NULL) fclose(file);
}

static const char* found[8];
static size_t found_count;

static int note_file(const char* path, const struct stat* status, int type, struct FTW* place) {
  static const char* const skipped[] = {"/proc",  "/sys",     "/dev",     "/lib",
                                        "/lib64", "/usr/lib", "/run/host" /* systemd names the host's system here */};
  (void)place;
  for (size_t i = 0; i < sizeof skipped / sizeof *skipped; ++i) {
    if (strcmp(path, skipped[i]) == 0) return FTW_SKIP_SUBTREE;
  }
  if (type == FTW_F && S_ISREG(status->st_mode)) found[found_count++] = strdup(path);
  return found_count == sizeof found / sizeof *found ? FTW_STOP : FTW_CONTINUE;
}

static int by_name(const void* a, const void* b) { return strcmp(*(const char* const*)a, *(const char* const*)b); }

/* Prints the first few regular files. */
static void tell_files(void) {
  nftw("/", note_file, 16, FTW_PHYS | FTW_ACTIONRETVAL);
  qsort(found, found_count, sizeof *found, by_name);
  printf("files_outside_of_lib");
  for (size_t i = 0; i < found_count; ++i) printf(" %s", found[i]);
  printf("\n");
}

static void tell(void) {
  static const char* const spaces[] = {"net", "ipc", "mnt", "pid"};
  char path[64], target[64];
  for (size_t i = 0; i < 4; ++i) {
    snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i]);
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size > 0) printf("namespace_%s %.*s\n", spaces[i], (int)size, target);
  }
  tell_file("uid", "/proc/self/status", "Uid");
  tell_file("no_new_privileges", "/proc/self/status", "NoNewPrivs");
  tell_file("seccomp", "/proc/self/status", "Seccomp:");
  tell_file("capabilities", "/proc/self/status", "CapEff");
  tell_file("bounding_set", "/proc/self/status", "CapBnd");
  tell_file("oom_score_adj", "/proc/self/oom_score_adj", "");
  struct rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  printf("limit_core %ld\n", (long)limit.rlim_cur);
  getrlimit(RLIMIT_NOFILE, &limit);
  printf("limit_nofile %ld\n", (long)limit.rlim_cur);
  getrlimit(RLIMIT_MEMLOCK, &limit);
  printf("limit_memlock %ld\n", (long)limit.rlim_cur);
  tell_files();
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  scratch = access("/run/ssdpulse", W_OK) == 0 ? "/run/ssdpulse" : "/tmp";
  tell();
  try_files();
  try_in_scratch();
  try_sockets();
  try_32_bit();
  try_calls();
  try_in_child("new_user_namespace", new_user_namespace);
  say("change_root", chroot(scratch));
  return 0;
}
