// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"trueup.dev/internal/filelock"
)

const (
	treeKeyPrefix = "tree-" // prefix of the cache key of binaries built from a checkout
	// age at which such a binary is removed; each change of the checkout creates another
	unusedAfter     = 3 * 24 * time.Hour
	buildDirPattern = "build-*"
)

// builder builds the control plane once, even if several processes need it at the same time.
type builder struct {
	source   source
	download *download // nil to compile the source
	target   string    // path of the binary; no other file is in its directory
	out      io.Writer
}

// goCommandPath returns the path of the go command that builds target.
func goCommandPath(target string) (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf(
			"sandbox: the control plane binary %s does not exist yet, and no go command is on the PATH to build it: "+
				"install Go (https://go.dev/dl), "+
				"or set %s to a %s binary, or %s to the kubeconfig of an existing cluster",
			target,
			BinaryVariable,
			binaryName,
			KubeconfigVariable,
		)
	}
	return path, nil
}

// build returns when the binary exists.
func (b *builder) build(ctx context.Context) error {
	path := ""
	if b.download == nil {
		var err error
		if path, err = goCommandPath(b.target); err != nil {
			return err
		}
	}
	folder := filepath.Dir(b.target)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return unwritable("creating the control plane's cache directory", err)
	}
	unlock, err := b.lock(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if checkExecutable(b.target) == nil {
		return nil // built by the process that held the lock
	}

	// While the lock is held, such directories are left from builds that were killed.
	abandoned, err := filepath.Glob(filepath.Join(folder, buildDirPattern))
	if err != nil {
		return err
	}
	for _, dir := range abandoned {
		_ = os.RemoveAll(dir)
	}
	work, err := os.MkdirTemp(folder, buildDirPattern)
	if err != nil {
		return unwritable("writing to the control plane's cache directory", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := b.make(ctx, path, work); err != nil {
		return err
	}
	if b.source.tree != "" {
		removeUnused(filepath.Dir(folder), time.Now().Add(-unusedAfter))
	}
	return nil
}

// unwritable returns the error if the cache directory cannot be written.
func unwritable(action string, err error) error {
	return fmt.Errorf(
		"sandbox: %s: %w: set %s to a directory that you can write to, or %s to a %s binary",
		action, err, cacheVariable(), BinaryVariable, binaryName,
	)
}

// make builds or downloads the binary, in the directory work, and moves it to the target.
func (b *builder) make(ctx context.Context, goPath, work string) (err error) {
	verb, past, hint := "building", "built ", ""
	if b.download != nil {
		verb, past, hint = "downloading", "downloaded ", "; unset "+DownloadVariable+" to build it instead"
	} else {
		say(b.out, "trueup: building the control plane from %s; this can take minutes, but happens only once\n", b.source)
	}
	display := startProgress(b.out, "determining what to build", b.download != nil)
	var made string
	if b.download != nil {
		made, err = b.download.fetch(ctx, work, display)
	} else {
		made, err = b.compile(ctx, goPath, work, display)
	}
	if err == nil {
		// The rename is atomic, so no process ever uses an incomplete binary.
		err = os.Rename(made, b.target)
	}
	if err != nil {
		display.end("")
		return fmt.Errorf("sandbox: %s the control plane from %s: %w%s", verb, b.source, err, hint)
	}
	display.end(past + b.target)
	return nil
}

func (b *builder) lock(ctx context.Context, path string) (func(), error) {
	var display *progress
	unlock, err := filelock.Lock(ctx, path, func(holder string) {
		text := "waiting for " + holder + ", which is building the control plane"
		if display == nil {
			display = startProgress(b.out, text, false)
		}
		display.update("%s", text)
	})
	if display != nil {
		display.end("")
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, unwritable("writing to the control plane's cache directory", err)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: building the control plane: %w", err)
	}
	return unlock, nil
}

// compile builds the binary in the directory work and returns its path.
func (b *builder) compile(ctx context.Context, goPath, work string, display *progress) (string, error) {
	state := buildState{display: display}
	command := goCommand{path: goPath, dir: b.source.tree, progress: state.line}
	if b.source.tree == "" {
		// A module that requires only the control plane gets exactly the versions of the control plane's go.mod. Unlike "go
		// install package@version", it lets the packages be counted.
		command.dir = filepath.Join(work, "module")
		if err := os.Mkdir(command.dir, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(command.dir, "go.mod"), []byte("module build\n"), 0o600); err != nil {
			return "", err
		}
		if _, err := command.run(ctx, "get", controlPlaneMain+"@"+b.source.query()); err != nil {
			return "", err
		}
	}
	flags := compilerFlags()
	list := append([]string{
		"list", "-mod=readonly", "-deps", "-f", "{{if .Stale}}{{.ImportPath}} {{len .GoFiles}}{{end}}",
	}, flags...)
	stale, err := command.run(ctx, append(list, controlPlaneMain)...)
	if err != nil {
		return "", err
	}
	state.begin(newWorkload(stale))
	built := filepath.Join(work, filepath.Base(b.target))
	build := append([]string{"build", "-mod=readonly", "-v", "-o", built}, flags...)
	if _, err := command.run(ctx, append(build, controlPlaneMain)...); err != nil {
		return "", err
	}
	return built, nil
}

// buildState counts the progress reported by the go command. Only the goroutine that reads the output of the running go
// command calls line, and begin is called between commands.
type buildState struct {
	display  *progress
	modules  int
	packages int
	work     *workload // nil before the packages to compile are known
}

func (s *buildState) begin(work *workload) {
	s.work = work
	s.display.phase("compiling %d packages%s", len(work.weights), work.expected())
}

func (s *buildState) line(line string) {
	if module, ok := downloading(line); ok {
		s.modules++
		text := fmt.Sprintf("downloading modules: %d so far, now %s", s.modules, module)
		if s.modules == 1 {
			s.display.phase("%s", text)
		} else {
			s.display.update("%s", text)
		}
		return
	}
	// A package is reported when its compilation starts. The last one is the program itself; after that only linking
	// remains.
	s.packages++
	if s.work == nil {
		s.display.update("compiling package %d", s.packages)
		return
	}
	left := s.work.compiling(line)
	switch {
	case line == controlPlaneMain:
		s.display.phase("linking the binary of %d packages", s.packages)
	case left > 0:
		s.display.update("compiling package %d of %d", s.packages, len(s.work.weights))
	default:
		s.display.update("compiling package %d of %d%s", s.packages, len(s.work.weights), s.work.expected())
	}
	s.display.expect(left)
}

// removeUnused removes the binaries below dir that were built from a checkout and have not been used since the given
// time.
func removeUnused(dir string, since time.Time) {
	folders, err := filepath.Glob(filepath.Join(dir, treeKeyPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && info.ModTime().Before(since) {
			_ = os.RemoveAll(folder)
		}
	}
}

// IsBuilt reports whether Start with the same options finds the binary of the control plane, so that it does not have
// to build it first. It starts and builds nothing.
func IsBuilt(ctx context.Context, o Options) (bool, error) {
	if err := o.prepare(); err != nil {
		return false, err
	}
	if o.Kubeconfig != "" || o.Backend == Memory {
		return true, nil
	}
	if o.Binary != "" || os.Getenv(BinaryVariable) != "" {
		_, err := findBinary(ctx, &o)
		return err == nil, err
	}
	_, cached, err := locateCached(ctx)
	if err != nil {
		return false, err
	}
	if err = checkExecutable(cached); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sandbox: %w", err)
	}
	return true, nil
}

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

// compilerFlagsFile has a flag in each line. The Makefile uses it, too, so that tests and linters of the control plane
// share the compiled packages with its binary. It is a value of GOFLAGS, in which flags cannot contain spaces.
//
//go:embed compilerflags.txt
var compilerFlagsFile string

// compilerFlags returns flags of the go command that reduce the CPU time of compiling what programs that use Kubernetes
// do not link, but for a few of API server libraries: no debug information. All other packages are compiled as usual,
// because the user's programs share them through the build cache.
func compilerFlags() []string {
	return append(strings.Fields(compilerFlagsFile), "-ldflags=-s -w")
}

// compilerEnv returns variables that make the compiler collect garbage less often, which saves a seventh of its CPU
// time for a tenth more memory. A user's own GOGC prevails.
func compilerEnv() []string {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=400"}
}

const (
	// The processor time for a package of the control plane, on a fast and on a slow machine.
	fastPackage = 150 * time.Millisecond
	slowPackage = 450 * time.Millisecond
	// linkShare is the share of linking in the time of a complete build.
	linkShare = 0.1
	// Earlier estimates are useless: the first packages of a build are small.
	firstEstimate = 10 * time.Second
	minFraction   = 0.05
)

// workload estimates the time of a build. The weight of a package is its number of Go files.
type workload struct {
	weights     map[string]float64
	done, total float64
	began       time.Time
}

// newWorkload parses the output of "go list": each line has the path of a package to compile and its number of files.
func newWorkload(list string) *workload {
	w := &workload{weights: map[string]float64{}, began: time.Now()}
	for line := range strings.Lines(list) {
		var path string
		files := 0
		if n, _ := fmt.Sscan(line, &path, &files); n == 0 {
			continue
		}
		w.weights[path] = float64(files + 1)
		w.total += float64(files + 1)
	}
	return w
}

// expected returns how long the build takes, before anything is compiled. It returns "" for a short build.
func (w *workload) expected() string {
	processors := runtime.GOMAXPROCS(0)
	count := time.Duration(len(w.weights))
	fast, slow := count*fastPackage/time.Duration(processors), count*slowPackage/time.Duration(processors)
	if slow < time.Minute {
		return ""
	}
	return fmt.Sprintf(" (about %s to %s min on %d processors)", minutes(fast), minutes(slow), processors)
}

func minutes(d time.Duration) string { return fmt.Sprint(max(1, int(d.Round(time.Minute).Minutes()))) }

// compiling records that a package is being compiled. It returns how long the build still takes, or 0 if that is
// unknown.
func (w *workload) compiling(path string) time.Duration {
	w.done += w.weights[path]
	elapsed := time.Since(w.began)
	fraction := w.done / max(w.total, 1) * (1 - linkShare)
	if elapsed < firstEstimate || fraction < minFraction {
		return 0
	}
	return remaining(elapsed, fraction)
}

// remaining returns the time left after a fraction of the work is done, or 0 if that is unknown.
func remaining(elapsed time.Duration, fraction float64) time.Duration {
	if elapsed < time.Second || fraction <= 0 || fraction >= 1 {
		return 0
	}
	return time.Duration(float64(elapsed) * (1 - fraction) / fraction)
}

// roundly describes the time left, without precision that it does not have.
func roundly(left time.Duration) string {
	switch {
	case left >= 90*time.Second:
		return fmt.Sprintf("about %s min left", minutes(left))
	case left >= 10*time.Second:
		return fmt.Sprintf("about %d s left", int(left.Round(10*time.Second).Seconds()))
	}
	return "a few seconds left"
}
