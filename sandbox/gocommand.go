// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// interruptGrace is how long an interrupted go command may take to remove its temporary files.
const interruptGrace = 5 * time.Second

// goCommand runs the go command in a directory.
type goCommand struct {
	path string
	dir  string
	// progress is called with each line that reports progress: a downloaded module ("go: downloading example.com/m
	// v1.0.0"), a compiled package.
	progress func(line string)
}

// run returns the standard output of "go args...". The error contains the last lines of standard error that do not
// report progress.
func (g goCommand) run(ctx context.Context, args ...string) (string, error) {
	var stdout bytes.Buffer
	var output tail
	stderr := &lineWriter{each: func(line string) {
		if _, ok := downloading(line); ok || isPackage(line) {
			g.progress(line)
		} else {
			output.add(line)
		}
	}}
	cmd := exec.CommandContext(ctx, g.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, &stdout, stderr
	// The binary runs on this platform, whatever the surrounding build targets. A workspace around a checkout would select
	// other versions than the module does.
	cmd.Env = append(
		os.Environ(), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOWORK=off",
		"GOFLAGS="+buildFlags(os.Getenv("GOFLAGS")),
	)
	cmd.Env = append(cmd.Env, compilerEnv()...)
	// An interrupted go command cleans up, a killed one does not. If interrupts are not supported, this fails and exec
	// kills the process.
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = interruptGrace
	err := cmd.Run()
	stderr.flush()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w%s", args[0], err, &output)
	}
	return stdout.String(), nil
}

// buildFlags returns the value of GOFLAGS for the build. Of the user's flags only those remain that do not change the
// binary: it serves all programs of the user, and a build with -race or -gcflags would compile everything again. The
// result is never empty, so that it also overrides what "go env -w" has stored.
func buildFlags(flags string) string {
	kept := []string{"-buildvcs=false"} // git may be missing, or reject a directory of another user
	for _, flag := range strings.Fields(flags) {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if name == "modcacherw" || name == "p" {
			kept = append(kept, flag)
		}
	}
	return strings.Join(kept, " ")
}

// downloading returns the module in a line that reports a download.
func downloading(line string) (module string, ok bool) {
	return strings.CutPrefix(line, "go: downloading ")
}

// isPackage reports whether line is a package path, as printed by "go build -v". Compiler messages contain blanks.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:")
}
