//go:build tools

// Package tools names the programs, so that go.mod and go.sum hold what they are built from.
package tools

import (
	_ "github.com/opencontainers/runc"
)
