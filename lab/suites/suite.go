// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "sigs.k8s.io/controller-runtime"

// names are the directories of the suites that use envtest, below the directory pkg of the module. Two are left out:
// client/apiutil downloads another version of Kubernetes, and metrics/filters needs modules that this module does not
// have.
var names = []string{
	"builder", "cache", "client", "cluster", "controller", "controller/controllerutil", "envtest",
	"handler", "internal/controller", "internal/recorder", "internal/testing/controlplane", "manager",
	"manager/internal/integration", "reconcile", "source", "webhook",
}

// onExisting are the suites that use the cluster of USE_EXISTING_CLUSTER. The others start control planes of their own.
var onExisting = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
	return name == "envtest" || name == "internal/testing/controlplane"
})

// suite is a compiled suite.
type suite struct {
	name   string
	binary string
	dir    string // with its source and its test data
}

// build compiles a suite into a directory.
func build(ctx context.Context, name, into string) (*suite, error) {
	path := module + "/pkg/" + name
	s := &suite{name: name, binary: filepath.Join(into, strings.ReplaceAll(name, "/", "-"))}
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", s.binary, path)
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c %s: %w\n%s", path, err, out)
	}
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", path, err)
	}
	s.dir = strings.TrimSpace(string(dir))
	return s, nil
}

// spec is the part of a spec in Ginkgo's report that is used here.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	Failure                 struct {
		Message  string
		Location struct {
			FileName   string
			LineNumber int
		}
	}
}

func (s spec) name() string {
	return strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
}

// run runs a suite with additional environment variables and returns its specs. A spec that fails is tried up to a
// number of times.
func (s *suite) run(ctx context.Context, attempts int, environment ...string) ([]spec, error) {
	dir, err := os.MkdirTemp("", "suite-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	report := filepath.Join(dir, "report.json")
	command := exec.CommandContext(
		ctx, s.binary, "--ginkgo.no-color", "--ginkgo.seed=1", "--ginkgo.json-report="+report,
		fmt.Sprintf("--ginkgo.flake-attempts=%d", attempts),
	)
	command.Dir = s.dir
	command.Env = append(os.Environ(), append([]string{"TMPDIR=" + dir}, environment...)...)
	out, failed := command.CombinedOutput()
	content, err := os.ReadFile(report)
	if err != nil {
		return nil, fmt.Errorf("no report: %w\n%s", errors.Join(failed, err), out)
	}
	var reports []struct{ SpecReports []spec }
	if err := json.Unmarshal(content, &reports); err != nil {
		return nil, err
	}
	var specs []spec
	broken := false
	for _, r := range reports {
		specs = append(specs, r.SpecReports...)
	}
	for _, s := range specs {
		broken = broken || failedState(s.State)
	}
	if failed != nil && !broken {
		return nil, fmt.Errorf("no spec fails, but the suite does: %w\n%s", failed, out)
	}
	return specs, nil
}

// failedState reports whether a state of Ginkgo is a failure.
func failedState(state string) bool {
	return !slices.Contains([]string{"passed", "pending", "skipped"}, state)
}
