// SPDX-License-Identifier: Apache-2.0

// Command trueup-controlplane runs a Kubernetes control plane in one process, until it is interrupted.
// As "kube-apiserver" or "etcd", by the name of a link, it runs that command alone, for envtest.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if asset, ok := assets[filepath.Base(os.Args[0])]; ok {
		os.Exit(runAsset(asset, os.Args))
	}
	// If the parent has ended, its ends of the pipes are closed. SIGPIPE must not end this process before the directory is
	// removed.
	signal.Ignore(syscall.SIGPIPE)
	stderr, err := separateStderr()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: standard error: %v\n", err)
		os.Exit(1)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	command := newCommand(stdin, stdout, stderr)
	command.SetArgs(args)
	if err := command.Execute(); err != nil {
		_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
	return 0
}
