package e5

//go:generate go run -C internal/asm . -out ../../asm_amd64.s -stubs ../../asm_amd64.go -pkg e5
