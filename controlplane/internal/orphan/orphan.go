// SPDX-License-Identifier: Apache-2.0

// Package orphan ends a process that envtest started when the process that started it has ended. envtest does not stop
// its processes if a test is killed or interrupted, and their directories would stay as well.
package orphan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// prefix is how envtest names the directory that it creates for a process.
	prefix = "k8s_test_framework_"

	pollInterval    = 250 * time.Millisecond
	removalAttempts = 5
)

// End waits until the parent process has ended. Then it removes the directories in args, the command line of this
// process, that envtest created, and ends this process. If there are none, which means that the user keeps the data, it
// sends SIGTERM to this process.
func End(args []string) {
	for parent := os.Getppid(); os.Getppid() == parent; {
		time.Sleep(pollInterval)
	}
	directories := Directories(args, os.TempDir())
	if len(directories) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		return
	}
	for _, directory := range directories {
		// This process still creates files in it.
		for range removalAttempts {
			if os.RemoveAll(directory) == nil {
				break
			}
		}
	}
	os.Exit(1)
}

// Directories returns the directories of etcd and kube-apiserver in a command line that envtest created in the
// directory temporary.
func Directories(args []string, temporary string) []string {
	var found []string
	for _, arg := range args {
		name, directory, _ := strings.Cut(arg, "=")
		if slices.Contains([]string{"--data-dir", "--cert-dir"}, name) &&
			filepath.Dir(directory) == filepath.Clean(temporary) && strings.HasPrefix(filepath.Base(directory), prefix) {
			found = append(found, directory)
		}
	}
	return found
}
