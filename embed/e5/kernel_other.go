//go:build !amd64 && !arm64

package e5

func bestKernel() kernel { return plainKernel() }

// kernels are all that this CPU can run, the best first.
func kernels() []kernel { return []kernel{plainKernel()} }
