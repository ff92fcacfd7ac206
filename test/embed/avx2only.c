// Takes AVX-512 and AVX-VNNI out of what CPUID tells this process: cc -shared -fPIC -O1, then LD_PRELOAD.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static long fault(int on) { return syscall(SYS_arch_prctl, 0x1012 /* ARCH_SET_CPUID */, !on); }

static void handle(int sig, siginfo_t *info, void *context) {
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned char *at = (unsigned char *)r[REG_RIP];
	if (at[0] != 0x0f || at[1] != 0xa2) {
		signal(SIGSEGV, SIG_DFL);
		return;
	}
	unsigned a = r[REG_RAX], b, c = r[REG_RCX], d, leaf = a, sub = c;
	fault(0);
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	fault(1);
	if (leaf == 7 && sub == 0) {
		b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
		c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
		d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
	} else if (leaf == 7) {
		a &= ~(1u << 4 | 1u << 5 | 1u << 21 | 1u << 22 | 1u << 23);
		d &= ~(1u << 4 | 1u << 5 | 1u << 10);
	}
	r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
	r[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void) {
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSEGV, &action, 0);
	if (fault(1)) abort();
}
