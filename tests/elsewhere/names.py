"""What the standard library has on some systems only: modules, and names in modules that are everywhere."""

from __future__ import annotations

__all__ = ["ATTRIBUTES", "MISSING_MODULES", "MODULES", "missing_attributes"]

_TABLE = """
os: EX_OK O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC O_TMPFILE
os: P_NOWAITO RTLD_DEEPBIND RTLD_GLOBAL RTLD_LAZY RTLD_LOCAL RTLD_NODELETE RTLD_NOLOAD RTLD_NOW SCHED_OTHER SEEK_DATA SEEK_HOLE
os: WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG WTERMSIG chflags chown chroot confstr copy_file_range ctermid eventfd fchdir fchmod fchown
os: fdatasync fork forkpty fpathconf fstatvfs getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getresuid getsid
os: getuid getxattr initgroups killpg lchflags lchmod lchown listxattr lockf makedev major memfd_create minor mkfifo mknod nice openpty
os: pathconf pidfd_open posix_fadvise posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv pwrite pwritev readv
os: register_at_fork removexattr sched_getaffinity sched_getscheduler sched_setaffinity sched_yield sendfile setegid seteuid setgid
os: setgroups setpgid setpriority setregid setsid setuid setxattr splice statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname unshare
os: wait wait3 wait4 waitid writev
signal: ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL SIGPIPE SIGPROF SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2
signal: SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending
signal: sigtimedwait sigwait sigwaitinfo
mmap: MADV_DONTNEED MADV_HUGEPAGE MADV_NOHUGEPAGE MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED MAP_ANON MAP_ANONYMOUS MAP_NORESERVE
mmap: MAP_POPULATE MAP_PRIVATE MAP_SHARED PROT_EXEC PROT_READ PROT_WRITE
time: CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME clock_gettime clock_gettime_ns pthread_getcpuclockid
socket: AF_NETLINK AF_PACKET AF_UNIX SO_REUSEPORT recv_fds send_fds sethostname
select: epoll kqueue poll
subprocess: CREATE_NEW_PROCESS_GROUP CREATE_NO_WINDOW DETACHED_PROCESS STARTUPINFO
"""
#: What macOS has of these: all but what is Linux's own, and Windows's.
_NOT_ON_MACOS = """
os: O_DIRECT O_NOATIME O_PATH O_TMPFILE RTLD_DEEPBIND copy_file_range eventfd getresuid getxattr listxattr memfd_create pidfd_open
os: posix_fadvise posix_fallocate removexattr sched_getaffinity sched_getscheduler sched_setaffinity setxattr splice unshare
signal: sigtimedwait sigwaitinfo
mmap: MADV_HUGEPAGE MADV_NOHUGEPAGE MAP_POPULATE
time: pthread_getcpuclockid
socket: AF_NETLINK AF_PACKET
select: epoll
subprocess: CREATE_NEW_PROCESS_GROUP CREATE_NO_WINDOW DETACHED_PROCESS STARTUPINFO
"""
#: What a browser has not: clocks of a thread, other processes.
_NOT_IN_A_BROWSER = """
os: fork forkpty posix_spawn posix_spawnp
time: CLOCK_PROCESS_CPUTIME_ID pthread_getcpuclockid thread_time thread_time_ns
"""
_POSIX = "crypt curses fcntl grp nis posix pty pwd readline resource spwd syslog termios tty _posixsubprocess"
_WINDOWS = "_winapi msvcrt nt winreg winsound"


def _read(table: str) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in table.strip().splitlines():
        module, _, names = line.partition(": ")
        found[module] = found.get(module, frozenset()) | frozenset(names.split())
    return found


#: Names that some system has not, or only since Python 3.12 or 3.13, by module.
ATTRIBUTES = _read(_TABLE)
#: Modules that some system has not.
MODULES = frozenset([*_POSIX.split(), *_WINDOWS.split()])
#: Modules that a system has not.
MISSING_MODULES = {"win32": frozenset(_POSIX.split()), "darwin": frozenset(["spwd", *_WINDOWS.split()])}


def missing_attributes(system: str) -> dict[str, frozenset[str]]:
    """The names that a system has not, by module; those of Windows alone are its own."""
    if system != "win32":
        return _read(_NOT_ON_MACOS if system == "darwin" else _NOT_IN_A_BROWSER)
    return {module: names for module, names in ATTRIBUTES.items() if module != "subprocess"}
