/*
 * Kills the processes of a gateway at the Nth change that they make to the disk, and keeps a journal of all changes.
 *
 * Preloaded (LD_PRELOAD) into the gateway under test and whatever it starts; used by tests alone. Every write, sync,
 * truncation, new file, rename, link and removal below one folder is a point, and has a number. Points count over all
 * processes together, in an order that is that of the disk: while a change is made, no other one is.
 *
 * tests/crash_matrix/points.py makes the control file, which every process maps, and reads the journal; the layouts of
 * `struct control` and `struct entry` stand in both. RFHBRIDGE_CRASH_POINTS names the control file. Whoever crosses the
 * point dies, with the process that started it; the others die at their next change, so nothing is changed any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC 0x31505243u /* "CRP1" */
#define MOST_RULES 64
#define MOST_PROCESSES 256
#define NO_RULE 255

enum operation { WRITE = 1, SYNC, SYNC_FOLDER, TRUNCATE, CREATE, RENAME, LINK, UNLINK, MKDIR, RMDIR };
enum moment { BEFORE = 0, AFTER, HALF_DONE };
enum option { KEEP_JOURNAL = 1, SKIP_SYNCS = 2 };

struct control {
    uint32_t magic;
    uint32_t options;
    uint64_t count;   /* points so far */
    uint64_t kill_at; /* 0: never */
    uint32_t moment;
    uint32_t is_dead;
    uint32_t holder; /* whose turn it is to change something: a thread, or 0 */
    uint32_t processes;
    uint32_t rules;
    uint32_t unused;
    int32_t process[MOST_PROCESSES];
    uint8_t ignored[MOST_RULES]; /* rules whose files are no points */
    uint8_t deaf[MOST_RULES];    /* rules whose syncs are done for nothing: a planted fault */
    char rule[MOST_RULES][128];  /* fnmatch(3) patterns of paths below the folder; the first that fits counts */
    char folder[PATH_MAX];
    char journal[PATH_MAX];
};

struct entry {
    uint64_t number, inode;
    int64_t offset; /* of a write; the new length of a truncation */
    uint32_t length, operation, rule, process;
    uint16_t path_length, target_length;
    uint32_t unused;
};

/* One change that is about to be made. */
struct point {
    bool counts;
    uint64_t number;
    struct entry entry;
    char path[PATH_MAX], target[PATH_MAX];
};

static struct control *control;
static int journal = -1;

/* ---------------------------------------------------------------- the control file */

static void die(void) {
    for (;;)
        kill(getpid(), SIGKILL);
}

static bool is_ours(int32_t process) {
    for (uint32_t each = 0; each < control->processes && each < MOST_PROCESSES; each++)
        if (control->process[each] == process)
            return true;
    return false;
}

static void kill_all(void) {
    __atomic_store_n(&control->is_dead, 1, __ATOMIC_SEQ_CST);
    if (is_ours(getppid()))
        kill(getppid(), SIGKILL);
    die();
}

/* Also called by a process that was forked, through Python's ctypes, with the control file of its own gateway. */
int crash_points_attach(const char *path) {
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (file < 0)
        return -1;
    struct control *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped == MAP_FAILED || mapped->magic != MAGIC)
        return -1;
    control = mapped;
    if (control->is_dead)
        die();
    uint32_t place = __atomic_fetch_add(&control->processes, 1, __ATOMIC_SEQ_CST);
    if (place < MOST_PROCESSES)
        control->process[place] = getpid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (control->options & KEEP_JOURNAL) {
        int opened = (int)syscall(SYS_openat, AT_FDCWD, control->journal, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
        journal = fcntl(opened, F_DUPFD_CLOEXEC, 500); /* out of the way of whoever closes low numbers */
        syscall(SYS_close, opened);
    }
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RFHBRIDGE_CRASH_POINTS");
    if (path && *path && crash_points_attach(path) != 0)
        abort();
}

/* ---------------------------------------------------------------- whose file it is */

/* The path of a name below the folder into `found`; false where it is elsewhere. */
static bool below(int folder, const char *name, char *found) {
    char whole[PATH_MAX];
    size_t length = 0;
    if (!control || !name)
        return false;
    if (*name != '/') {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        long got = syscall(SYS_readlinkat, AT_FDCWD, link, whole, sizeof whole - 1);
        if (got <= 0)
            return false;
        length = (size_t)got;
        whole[length++] = '/';
    }
    if (length + strlen(name) >= sizeof whole)
        return false;
    strcpy(whole + length, name);
    size_t prefix = strlen(control->folder);
    if (strncmp(whole, control->folder, prefix) != 0 || (whole[prefix] != '/' && whole[prefix] != 0))
        return false;
    strcpy(found, whole[prefix] ? whole + prefix + 1 : "");
    return true;
}

static bool below_file(int file, char *found) {
    char link[64], whole[PATH_MAX];
    if (!control)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long got = syscall(SYS_readlinkat, AT_FDCWD, link, whole, sizeof whole - 1);
    if (got <= 0 || *whole != '/')
        return false;
    whole[got] = 0;
    return below(AT_FDCWD, whole, found);
}

static uint32_t rule_of(const char *path) {
    for (uint32_t each = 0; each < control->rules; each++)
        if (fnmatch(control->rule[each], path, 0) == 0)
            return each;
    return NO_RULE;
}

static uint64_t inode_of(const char *path) {
    struct stat facts;
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", control->folder, path);
    return lstat(whole, &facts) == 0 ? facts.st_ino : 0;
}

/* ---------------------------------------------------------------- before and after a change */

static void await_turn(void) {
    uint32_t nobody = 0, own = (uint32_t)syscall(SYS_gettid);
    while (!__atomic_compare_exchange_n(&control->holder, &nobody, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&control->is_dead, __ATOMIC_RELAXED))
            die();
        nobody = 0;
        sched_yield();
    }
    if (control->is_dead)
        die();
}

/* `point->path` is set. False where the change is no point: then `end_point` must not be called. */
static bool begin_point(struct point *point, enum operation operation, bool is_known) {
    if (!is_known)
        return false;
    uint32_t rule = rule_of(point->path);
    if (rule != NO_RULE && control->ignored[rule]) {
        if (control->is_dead)
            die();
        return false;
    }
    await_turn();
    point->number = ++control->count;
    point->entry = (struct entry){.number = point->number, .operation = operation, .rule = rule};
    point->entry.process = (uint32_t)getpid();
    if (point->number == control->kill_at && control->moment == BEFORE)
        kill_all();
    return true;
}

static bool dies_half_done(const struct point *point) {
    return point->number == control->kill_at && control->moment == HALF_DONE;
}

static void keep(struct point *point, const struct iovec *data, int parts) {
    size_t path = strlen(point->path), target = strlen(point->target);
    struct iovec piece[1024];
    int pieces = 3;
    point->entry.path_length = (uint16_t)path;
    point->entry.target_length = (uint16_t)target;
    piece[0] = (struct iovec){&point->entry, sizeof point->entry};
    piece[1] = (struct iovec){point->path, path};
    piece[2] = (struct iovec){point->target, target};
    size_t left = point->entry.length;
    for (int each = 0; each < parts && left > 0 && pieces < 1024; each++) {
        size_t taken = data[each].iov_len < left ? data[each].iov_len : left;
        piece[pieces++] = (struct iovec){data[each].iov_base, taken};
        left -= taken;
    }
    if (syscall(SYS_writev, journal, piece, pieces) < 0)
        abort(); /* a journal that is not whole proves nothing */
}

/* `data`, of which `point->entry.length` bytes were written. Leaves errno as it was. */
static void end_point(struct point *point, bool succeeded, const struct iovec *data, int parts) {
    int error = errno;
    bool is_deaf = (point->entry.operation == SYNC || point->entry.operation == SYNC_FOLDER) &&
                   point->entry.rule != NO_RULE && control->deaf[point->entry.rule];
    if (succeeded && (control->options & KEEP_JOURNAL) && !is_deaf)
        keep(point, data, parts);
    if (point->number == control->kill_at && control->moment != BEFORE)
        kill_all();
    __atomic_store_n(&control->holder, 0, __ATOMIC_RELEASE);
    errno = error;
}

static bool skips_syncs(void) { return control->options & SKIP_SYNCS; }

/* ---------------------------------------------------------------- writes */

static int64_t place_of(int file) {
    struct stat facts;
    if ((fcntl(file, F_GETFL) & O_APPEND) && fstat(file, &facts) == 0)
        return facts.st_size;
    return lseek(file, 0, SEEK_CUR);
}

static ssize_t write_parts(int file, const struct iovec *parts, int count, int64_t offset) {
    return offset < 0 ? syscall(SYS_writev, file, parts, count)
                      : syscall(SYS_pwritev, file, parts, count, (long)offset, 0L);
}

/* `offset` -1: where the file stands. Of a write that is half done, half the bytes are on the disk. */
static ssize_t write_at(int file, const struct iovec *parts, int count, int64_t offset) {
    struct point point = {0};
    struct stat facts;
    if (!begin_point(&point, WRITE, below_file(file, point.path)))
        return write_parts(file, parts, count, offset);
    if (dies_half_done(&point)) {
        struct iovec half = {parts[0].iov_base, parts[0].iov_len / 2};
        write_parts(file, &half, 1, offset);
        kill_all();
    }
    point.entry.offset = offset < 0 ? place_of(file) : offset;
    point.entry.inode = fstat(file, &facts) == 0 ? facts.st_ino : 0;
    ssize_t written = write_parts(file, parts, count, offset);
    point.entry.length = written > 0 ? (uint32_t)written : 0;
    end_point(&point, written > 0, parts, count);
    return written;
}

ssize_t write(int file, const void *data, size_t length) {
    if (!control)
        return syscall(SYS_write, file, data, length);
    return write_at(file, &(struct iovec){(void *)data, length}, 1, -1);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return control ? write_at(file, parts, count, -1) : syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    if (!control)
        return syscall(SYS_pwrite64, file, data, length, offset);
    return write_at(file, &(struct iovec){(void *)data, length}, 1, offset);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return pwrite64(file, data, length, offset); }

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    return control ? write_at(file, parts, count, offset) : syscall(SYS_pwritev, file, parts, count, (long)offset, 0L);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    return pwritev(file, parts, count, offset);
}

/* Copies within the kernel would bypass us; who finds them missing reads and writes instead. */
ssize_t copy_file_range(int from, off64_t *in, int to, off64_t *out, size_t length, unsigned int flags) {
    if (!control)
        return syscall(SYS_copy_file_range, from, in, to, out, length, flags);
    errno = ENOSYS;
    return -1;
}

/* ---------------------------------------------------------------- lengths */

static int truncated(long result, struct point *point, int64_t length, uint64_t inode) {
    point->entry.offset = length;
    point->entry.inode = inode;
    end_point(point, result == 0, NULL, 0);
    return (int)result;
}

int ftruncate64(int file, off64_t length) {
    struct point point = {0};
    struct stat facts = {0};
    if (!begin_point(&point, TRUNCATE, below_file(file, point.path)))
        return (int)syscall(SYS_ftruncate, file, length);
    fstat(file, &facts);
    return truncated(syscall(SYS_ftruncate, file, length), &point, length, facts.st_ino);
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int truncate64(const char *name, off64_t length) {
    struct point point = {0};
    if (!begin_point(&point, TRUNCATE, below(AT_FDCWD, name, point.path)))
        return (int)syscall(SYS_truncate, name, length);
    uint64_t inode = inode_of(point.path);
    return truncated(syscall(SYS_truncate, name, length), &point, length, inode);
}

int truncate(const char *name, off_t length) { return truncate64(name, length); }

/* ---------------------------------------------------------------- syncs */

static int synced(int file, long number) {
    struct point point = {0};
    struct stat facts = {0};
    bool is_known = below_file(file, point.path);
    if (is_known)
        fstat(file, &facts);
    if (!begin_point(&point, S_ISDIR(facts.st_mode) ? SYNC_FOLDER : SYNC, is_known))
        return control && skips_syncs() ? 0 : (int)syscall(number, file);
    point.entry.inode = facts.st_ino;
    int result = skips_syncs() ? 0 : (int)syscall(number, file);
    end_point(&point, result == 0, NULL, 0);
    return result;
}

int fsync(int file) { return synced(file, SYS_fsync); }

int fdatasync(int file) { return synced(file, SYS_fdatasync); }

/* ---------------------------------------------------------------- names */

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    struct point point = {0};
    struct stat facts;
    bool is_known = (flags & (O_CREAT | O_TRUNC)) && below(folder, name, point.path);
    bool is_there = is_known && inode_of(point.path) != 0;
    if (is_there && !(flags & O_TRUNC))
        is_known = false; /* nothing changes */
    if (!begin_point(&point, is_there ? TRUNCATE : CREATE, is_known))
        return (int)syscall(SYS_openat, folder, name, flags, mode);
    int opened = (int)syscall(SYS_openat, folder, name, flags, mode);
    point.entry.inode = opened >= 0 && fstat(opened, &facts) == 0 ? facts.st_ino : 0;
    end_point(&point, opened >= 0, NULL, 0);
    return opened;
}

static mode_t mode_of(int flags, va_list arguments) {
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN_LIKE(function)                                                                                            \
    int function(const char *name, int flags, ...) {                                                                   \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = mode_of(flags, arguments);                                                                       \
        va_end(arguments);                                                                                             \
        return open_at(AT_FDCWD, name, flags, mode);                                                                   \
    }
#define OPENAT_LIKE(function)                                                                                          \
    int function(int folder, const char *name, int flags, ...) {                                                       \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = mode_of(flags, arguments);                                                                       \
        va_end(arguments);                                                                                             \
        return open_at(folder, name, flags, mode);                                                                     \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)

int creat64(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int creat(const char *name, mode_t mode) { return creat64(name, mode); }

int renameat2(int from, const char *name, int to, const char *target, unsigned int flags) {
    struct point point = {0};
    bool is_known = below(from, name, point.path) && below(to, target, point.target);
    if (!begin_point(&point, RENAME, is_known))
        return (int)syscall(SYS_renameat2, from, name, to, target, flags);
    point.entry.inode = inode_of(point.path);
    int result = (int)syscall(SYS_renameat2, from, name, to, target, flags);
    end_point(&point, result == 0, NULL, 0);
    return result;
}

int renameat(int from, const char *name, int to, const char *target) { return renameat2(from, name, to, target, 0); }

int rename(const char *name, const char *target) { return renameat2(AT_FDCWD, name, AT_FDCWD, target, 0); }

int linkat(int from, const char *name, int to, const char *target, int flags) {
    struct point point = {0};
    bool is_known = below(from, name, point.path) && below(to, target, point.target);
    if (!begin_point(&point, LINK, is_known))
        return (int)syscall(SYS_linkat, from, name, to, target, flags);
    point.entry.inode = inode_of(point.path);
    int result = (int)syscall(SYS_linkat, from, name, to, target, flags);
    end_point(&point, result == 0, NULL, 0);
    return result;
}

int link(const char *name, const char *target) { return linkat(AT_FDCWD, name, AT_FDCWD, target, 0); }

int unlinkat(int folder, const char *name, int flags) {
    struct point point = {0};
    enum operation operation = flags & AT_REMOVEDIR ? RMDIR : UNLINK;
    bool is_known = below(folder, name, point.path) && inode_of(point.path) != 0;
    if (!begin_point(&point, operation, is_known))
        return (int)syscall(SYS_unlinkat, folder, name, flags);
    int result = (int)syscall(SYS_unlinkat, folder, name, flags);
    end_point(&point, result == 0, NULL, 0);
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int folder, const char *name, mode_t mode) {
    struct point point = {0};
    bool is_known = below(folder, name, point.path) && inode_of(point.path) == 0;
    if (!begin_point(&point, MKDIR, is_known))
        return (int)syscall(SYS_mkdirat, folder, name, mode);
    int result = (int)syscall(SYS_mkdirat, folder, name, mode);
    end_point(&point, result == 0, NULL, 0);
    return result;
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
