package demo

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch are the machines whose system calls the filter knows. The number of
// fsync depends on it, and a filter for the wrong one would hold back something
// else.
var auditArch = map[string]uint32{
	"amd64":   unix.AUDIT_ARCH_X86_64,
	"arm64":   unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64,
	"ppc64le": unix.AUDIT_ARCH_PPC64LE,
	"s390x":   unix.AUDIT_ARCH_S390X,
}

// notification, from linux/seccomp.h: struct seccomp_notif.
type notification struct {
	ID    uint64
	PID   uint32
	Flags uint32
	Data  struct {
		Number  int32
		Arch    uint32
		Pointer uint64
		Args    [6]uint64
	}
}

// answer, from linux/seccomp.h: struct seccomp_notif_resp.
type answer struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// filterSyncs makes the calling thread, and whatever it will exec, ask the
// returned descriptor before every fsync and fdatasync. Every other call passes
// untouched. It needs no privilege, for it first gives up the gaining of any
// (no_new_privs). The caller must be locked to its thread.
func filterSyncs() (*os.File, error) {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("demo: slow disk: system calls of %s are not known here", runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("demo: slow disk: no_new_privs: %w", err)
	}
	const number, machine = 0, 4 // offsets in struct seccomp_data
	load, equal, ret := uint16(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS), uint16(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K), uint16(unix.BPF_RET|unix.BPF_K)
	program := []unix.SockFilter{
		{Code: load, K: machine},
		{Code: equal, K: arch, Jf: 3},
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_FSYNC, Jt: 2},
		{Code: equal, K: unix.SYS_FDATASYNC, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// WAIT_KILLABLE_RECV (Linux 5.19): without it a signal to the waiting thread,
	// such as Go's own for preemption, starts the call and its delay anew.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	fd, err := installFilter(flags, &fprog)
	if errors.Is(err, unix.EINVAL) {
		fd, err = installFilter(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, &fprog)
	}
	if err != nil {
		return nil, fmt.Errorf("demo: slow disk: the kernel refuses the seccomp filter (user notification needs Linux 5.5 and a container that allows seccomp): %w", err)
	}
	return os.NewFile(fd, "seccomp listener"), nil
}

func installFilter(flags uintptr, program *unix.SockFprog) (uintptr, error) {
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(program)))
	if errno != 0 {
		return 0, errno
	}
	return fd, nil
}

// receive takes one notification. ENOENT means that whoever asked is gone.
func receive(fd uintptr) (notification, error) {
	var n notification // must be zero when the kernel gets it
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return n, errno
	}
	return n, nil
}

// letPass lets the kernel carry the call out as if it had never been asked.
func letPass(fd uintptr, id uint64) error {
	a := answer{ID: id, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	if errno != 0 {
		return errno
	}
	return nil
}

// syncWakeUp asks the kernel to run the two sides on one core, which halves
// the cost of a call that is not held back (Linux 6.6). An older kernel answers
// with an error, and nothing is lost.
func syncWakeUp(fd uintptr) {
	const setFlags = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS, _IOW('!', 4, __u64)
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, setFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}
