/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few kernel structures that we look into, relocated by CO-RE when the
 * programs are loaded. Only the members that are read are declared.
 */
#ifndef CUSTOM_LABELS_KERNEL_H
#define CUSTOM_LABELS_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define EEXIST 17 /* include/uapi/asm-generic/errno-base.h */

/* include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define PF_IO_WORKER 0x00000010 /* of io_uring */
#ifdef OLDER_KERNELS
#define PF_USER_WORKER 0 /* the bit is PF_USED_ASYNC before 5.18 */
#else
#define PF_USER_WORKER 0x00004000 /* of io_uring, vhost; 6.4 and newer, unused before */
#endif
#define MAX_PID_NS_LEVEL 32 /* include/linux/pid_namespace.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[];
};

struct signal_struct {
	atomic_t live;
};

struct user_namespace {
	int level; /* 0: the host's */
};

struct super_block {
	__u32 s_dev;
	struct user_namespace *s_user_ns; /* of who has mounted it */
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	__s64 i_size;
	__s64 i_ctime_sec; /* from 6.11 on */
	__u32 i_ctime_nsec;
};
/* 6.6 to 6.10 */
struct inode___6_10 {
	struct timespec64 __i_ctime;
};
struct inode___6_5 {
	struct timespec64 i_ctime;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct maple_tree {
	void *ma_root;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;
	unsigned long xol_vaddr;
};

struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct maple_tree mm_mt;
	struct uprobes_state uprobes_state;
	unsigned long exec_vm;
	unsigned long start_code;
	unsigned long start_stack;
	mm_context_t context;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct linux_binprm {
	const char *interp;
	struct file *file;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
};
/* arch/x86/include/uapi/asm/ptrace.h; also the head of the perf event context. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
	};
	int syscallno;
};
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#else
#error "unknown architecture"
#endif

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct cred {
	struct {
		__u32 val;
	} uid;
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	__u64 start_boottime;
	__u64 self_exec_id;
#ifdef __TARGET_ARCH_arm64
	unsigned long nvcsw, nivcsw;
#endif
	struct sched_entity se;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct files_struct *files;
	const struct cred *real_cred;
	struct uprobe_task *utask;
	struct thread_struct thread;
	char comm[16];
	void *stack;
	unsigned int __state; /* from 5.14 on */
};

/* before 5.14 */
struct task_struct___5_13 {
	long state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/*
 * Context of a perf event program (include/uapi/linux/bpf_perf_event.h). The
 * verifier translates offsets in it, so it must not be relocated by CO-RE.
 */
#if defined(__TARGET_ARCH_x86)
struct perf_context {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	__u64 ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#else
struct perf_context {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
#endif

#endif
