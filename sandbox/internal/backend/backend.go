// SPDX-License-Identifier: Apache-2.0

// Package backend connects package sandbox with the API in memory, which only programs have that import package
// sandbox/memory.
package backend

import (
	"io"

	"k8s.io/client-go/rest"
)

// Options configure an API.
type Options struct {
	// Dir is the directory of its files. Default: a private temporary directory.
	Dir string
	// Port is the port on 127.0.0.1. Default: a free port.
	Port int
	// DisableControllers and DisablePods disable what acts on objects.
	DisableControllers, DisablePods bool
	// LogOutput receives errors that no response returns. Default: os.Stderr.
	LogOutput io.Writer
}

// API is a running API.
type API interface {
	RESTConfig() *rest.Config
	KubeconfigPath() string
	Dir() string
	// Stop stops the API and returns when nothing of it is left.
	Stop() error
	// Done is closed when the API has ended. Then Err returns the reason, nil if it was stopped.
	Done() <-chan struct{}
	Err() error
}

// Memory starts the API in memory. Nil if the program does not import package sandbox/memory.
var Memory func(Options) (API, error)
