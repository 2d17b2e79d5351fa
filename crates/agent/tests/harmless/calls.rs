//! The calls that `efault.c` makes: every system call of the front end's own table, and every
//! function of the C library that hands a pointer to the kernel.

use std::fmt::Write;

/// The front end's own table.
#[path = "../../src/kernel_calls/table.rs"]
#[allow(dead_code)]
mod table;

/// Calls that would change this machine, wait, end somebody or make it hard to go on.
const NOT_TRIED: &[&str] = &[
    "acct",
    "chroot",
    "exit",
    "exit_group",
    "kill",
    "mount",
    "msgrcv",
    "msgsnd",
    "pause",
    "personality",
    "pivot_root",
    "prlimit64",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_send_signal",
    "rt_sigaction",
    "setdomainname",
    "sethostname",
    "setrlimit",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount2",
    "vhangup",
    "wait4",
    "waitid",
    "clock_settime",
    "setgroups",
];

/// System calls whose arguments do not follow from the table, or that the front end handles one by
/// one: name, number (0: as in the table), arguments as `efault.c` reads them.
const BY_NUMBER: &str = "
    rt_sigtimedwait=0:ppp8 rt_sigprocmask=0:0pp8 rt_sigpending=0:p8 ppoll=0:pnpp8 signalfd4=0:fp80 epoll_pwait=0:fpn0p8
    epoll_ctl=0:f3Ep getitimer=0:0p setitimer=0:0pp ioctl=0:fNp statx=0:fs00p getcpu=0:pp sched_getaffinity=0:0np
    sched_getattr=0:0pn0 clock_gettime=0:0p clock_getres=0:0p clock_nanosleep=0:00pp getrlimit=0:0p getrusage=0:0p
    utimensat=0:fsp0 newfstatat=0:fsp0 select=0:npppp pselect6=0:nppppp sendfile=0:ffpn copy_file_range=0:fpfpn0
    inotify_add_watch=0:fs1 sched_setaffinity=0:0np sched_getparam=0:0p sched_rr_get_interval=0:0p getgroups=0:np
    capget=0:pp mq_timedsend=0:fpn0p epoll_wait=0:fp90 socketpair=0:110p sendto=0:fpn000 recvfrom=0:fpn0pp
    readv=19:fvc writev=20:fvc preadv=295:fvc00 pwritev=296:fvc00 preadv2=327:fvc000 pwritev2=328:fvc000
    sendmsg=46:fm0 recvmsg=47:fr0 sendmmsg=307:fMc0 recvmmsg=299:fMc0p process_vm_readv=310:Ivcvc0
    process_vm_writev=311:Ivcvc0 sigaltstack=131:0p rt_sigaction=13:U0p8 prctl=157:16p get_robust_list=274:0pp
    get_mempolicy=239:p0000 waitid=247:00p5 wait4=61:0p1p prlimit64=302:070p
";

/// Functions of the C library, with their arguments as `efault.c` reads them.
const FUNCTIONS: &str = "
    read:fpn write:fpn pread:fpn0 pwrite:fpn0 pread64:fpn0 pwrite64:fpn0 recv:fpn0 send:fpn0 recvfrom:fpn0pp sendto:fpn000
    readv:fvc writev:fvc preadv:fvc0 pwritev:fvc0 preadv64:fvc0 pwritev64:fvc0 preadv2:fvc00 pwritev2:fvc00 preadv64v2:fvc00
    pwritev64v2:fvc00 sendmsg:fm0 recvmsg:fr0 sendmmsg:fMc0 recvmmsg:fMc0p process_vm_readv:Ivcvc0 process_vm_writev:Ivcvc0
    getrandom:pn0 getentropy:pn getcwd:pn getwd:p poll:p00 poll:pn0 ppoll:pnpp select:npppp pselect:nppppp
    epoll_wait:fp90 epoll_pwait:fp90p epoll_pwait2:fp9pp epoll_ctl:f3Ep accept:fpp accept4:fpp0 getsockname:fpp
    getpeername:fpp connect:fpn bind:fpn getsockopt:f00pp getsockopt:f13pp setsockopt:f00pn socketpair:110p pipe:p pipe2:p0
    copy_file_range:fpfpn0 splice:fpfpn0 sendfile:ffpn sendfile64:ffpn getdents64:fpn getdirentries:fpnp getdirentries64:fpnp
    sched_getaffinity:0np sched_setaffinity:0np sched_getparam:0p sched_setparam:0p sched_setscheduler:00p
    sched_rr_get_interval:0p getcpu:pp getloadavg:p3 getgroups:np getresuid:ppp getresgid:ppp getrusage:0p times:p uname:p
    sysinfo:p getrlimit:07p getrlimit64:7p prlimit:070p prlimit64:070p capget:pp mincore:0np nanosleep:pp
    clock_nanosleep:00pp clock_getres:0p clock_gettime:0p clock_getcpuclockid:0p gettimeofday:p0 timespec_get:p0 time:p
    adjtime:0p adjtimex:p ntp_gettime:p clock_adjtime:0p getitimer:0p setitimer:0pp timerfd_gettime:fp timerfd_settime:f0pp
    thrd_sleep:pp sigpending:p sigtimedwait:ppp sigprocmask:00p pthread_sigmask:00p sigaction:U0p sigaltstack:0p
    signalfd:fp0 eventfd_read:Ep eventfd_write:f1 waitpid:0p1 wait4:0p1p wait3:p1p waitid:00p5
    mq_getattr:fp mq_setattr:fpp mq_open:s0 mq_unlink:s mq_send:fpn0 mq_timedsend:fpn0p mq_receive:fpnp mq_timedreceive:fpnpp
    tcgetattr:fp tcsetattr:f0p ttyname_r:fpn ptsname_r:fpn getlogin_r:pn isatty:f ioctl:fNp fcntl:f5p fcntl64:f5p
    gethostname:pn getdomainname:pn pthread_getname_np:Tpn pthread_setname_np:TR pthread_getaffinity_np:Tnp
    pthread_setaffinity_np:Tnp pthread_getcpuclockid:Tp sem_trywait:p sem_post:p sem_timedwait:pp sem_clockwait:p0p
    pthread_mutex_timedlock:pp pthread_cond_signal:p pthread_rwlock_timedrdlock:pp pthread_rwlock_timedwrlock:pp
    stat:sp lstat:sp fstat:fp fstatat:fsp0 stat64:sp lstat64:sp fstat64:fp fstatat64:fsp0 statx:fs00p statfs:sp fstatfs:fp
    statfs64:sp fstatfs64:fp statvfs:sp fstatvfs:fp statvfs64:sp fstatvfs64:fp access:s0 faccessat:fs00 euidaccess:s0 eaccess:s0
    readlink:spn readlinkat:fspn unlink:s unlinkat:fs0 truncate:s0 truncate64:s0 rmdir:s chdir:s chdir:D mkdir:s0 mkdirat:fs0
    chmod:s0 fchmodat:fs00 chown:s00 lchown:s00 fchownat:fs000 rename:ss renameat:fsfs renameat2:fsfs0 link:ss linkat:fsfs0
    symlink:ss symlinkat:sfs remove:s creat:s0 creat64:s0 mkfifo:s0 mkfifoat:fs0 mknod:s00 mknodat:fs00 open:s0 open64:s0
    openat:fs0 openat64:fs0 utime:sp utimes:sp lutimes:sp futimes:fp futimesat:fsp futimens:fp utimensat:fsp0
    getxattr:sspn lgetxattr:sspn fgetxattr:fspn setxattr:sspn0 lsetxattr:sspn0 fsetxattr:fspn0 listxattr:spn llistxattr:spn
    flistxattr:fpn removexattr:ss lremovexattr:ss fremovexattr:fs inotify_add_watch:fs1 name_to_handle_at:fspp0
    open_by_handle_at:fp0 memfd_create:s0 shm_open:s00 shm_unlink:s sem_open:s0 sem_unlink:s fanotify_mark:f00fs
    fopen:sR fopen64:sR setmntent:sR opendir:D opendir:s realpath:sp realpath:s0 canonicalize_file_name:s mkstemp:X
    mkstemp64:X mkostemp:X0 mkostemp64:X0 mkstemps:X0 mkostemps:X00 mkdtemp:X mktemp:X tmpnam_r:p scandir:Dp00 ftw:p0n nftw:p0n0
    glob:s00p glob64:s00p wordexp:sp0 dlopen:s1 dprintf:fs if_nametoindex:R if_indextoname:1p get_mempolicy:pp0
    aio_suspend:p0p
";

/// The rows of `calls.inc`.
pub fn text() -> String {
    let mut text = String::new();
    let mut row = |name: &str, number: i64, how: &str| {
        writeln!(text, "{{\"{name}\", {number}, \"{how}\"}},").unwrap();
    };
    let own: Vec<(&str, i64, &str)> = BY_NUMBER
        .split_whitespace()
        .map(|word| {
            let (call, how) = word.split_once(':').unwrap();
            let (name, number) = call.split_once('=').unwrap();
            let number = number.parse().unwrap();
            let known = table::CALLS.iter().find(|c| c.name == name);
            (name, if number == 0 { known.expect(name).number } else { number }, how)
        })
        .collect();
    let tried = |name: &str| !NOT_TRIED.contains(&name) && own.iter().all(|(own, ..)| *own != name);
    for call in table::CALLS.iter().filter(|c| !c.pointers.is_empty() && tried(c.name)) {
        let mut how = ['0'; 6];
        for (at, size) in call.pointers {
            how[*at] = if matches!(size, table::Size::Path) { 's' } else { 'p' };
            match size {
                table::Size::Each(count, _) | table::Size::Bits(count) => how[*count] = 'n',
                _ => {}
            }
        }
        // What comes first and is no pointer is a descriptor where there can be one.
        if how[0] == '0' {
            how[0] = 'f';
        }
        row(call.name, call.number, &how.iter().collect::<String>());
    }
    own.iter().for_each(|(name, number, how)| row(name, *number, how));
    for function in FUNCTIONS.split_whitespace() {
        let (name, how) = function.split_once(':').unwrap();
        row(name, -1, how);
    }
    text
}
