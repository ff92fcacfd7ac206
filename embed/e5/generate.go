package e5

//go:generate go run -C internal/asm . -out ../../asm_amd64.s -stubs ../../asm_amd64.go -pkg e5
//go:generate go run -C internal/asm ./neon ../../asm_arm64.s ../../asm_arm64.go
