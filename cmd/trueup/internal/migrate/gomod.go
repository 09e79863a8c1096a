// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// moduleFile is what `go mod edit -json` prints about a go.mod.
type moduleFile struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path, Version string }
	}
}

// newGoMod returns the go.mod without the old modules, and with at least the versions that trueup needs. Old versions
// of controller-runtime and Kubernetes that stay in go.mod make `go get` fail.
func (p *project) newGoMod(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "trueup-migrate-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	copied := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(copied, p.goMod, 0o600); err != nil {
		return nil, err
	}
	edit := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "go", append(append([]string{"mod", "edit"}, args...), copied)...) //nolint:gosec // versions and paths of go.mod
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go mod edit: %w: %s", err, stderr.String())
		}
		return out, nil
	}
	out, err := edit("-json")
	if err != nil {
		return nil, err
	}
	var parsed moduleFile
	if err := json.Unmarshal(out, &parsed); err != nil {
		return nil, err
	}
	var args []string
	if older(parsed.Go, goVersion) {
		args = append(args, "-go="+goVersion)
	}
	for _, required := range parsed.Require {
		want := versions[required.Path]
		switch {
		case isOldModule(required.Path):
			args = append(args, "-droprequire="+required.Path)
		case want != "" && older(required.Version, want):
			args = append(args, "-require="+required.Path+"@"+want)
		}
	}
	for _, replaced := range parsed.Replace {
		if isOldModule(replaced.Old.Path) {
			args = append(args, "-dropreplace="+strings.TrimSuffix(replaced.Old.Path+"@"+replaced.Old.Version, "@"))
		}
	}
	if len(args) == 0 {
		return p.goMod, nil
	}
	if _, err := edit(args...); err != nil {
		return nil, err
	}
	return os.ReadFile(copied) //nolint:gosec // written above
}

func isOldModule(module string) bool {
	return slices.ContainsFunc(oldModules, func(old string) bool {
		return module == old || strings.HasPrefix(module, old+"/")
	})
}

// older compares versions by their numbers; a pre-release counts as its release.
func older(a, b string) bool { return slices.Compare(numbers(a), numbers(b)) < 0 }

func numbers(version string) []int {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	version, _, _ = strings.Cut(version, "+")
	parsed := []int{0, 0, 0}
	for i, part := range strings.SplitN(version, ".", 3) {
		parsed[i], _ = strconv.Atoi(part)
	}
	return parsed
}

// generation detects the old version: from go.mod, otherwise from names that only some versions have.
func (p *project) generation() (Generation, error) {
	imported, names := map[string]bool{}, map[string]bool{}
	for _, f := range p.files {
		for _, known := range f.imports {
			for _, old := range oldModules {
				if strings.HasPrefix(known, old+"/") {
					imported[old] = true
				}
			}
		}
		for name := range f.oldNames() {
			names[name] = true
		}
	}
	version := ""
	for line := range strings.Lines(string(p.goMod)) {
		if words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require ")); len(words) >= 2 &&
			isOldModule(words[0]) && strings.HasPrefix(words[1], "v") && words[0] != appSDK {
			version = words[1]
		}
	}
	switch {
	case imported[appSDK]:
		return Grafana, nil
	case !imported[reconcilerRuntime] && !imported["reconciler.io/runtime"]:
		return "", fmt.Errorf("no file imports %s", strings.Join(oldModules, ", "))
	case version != "" && older(version, "v0.6.0"):
		return V01, nil
	case version != "" && older(version, "v0.12.0"):
		return V06, nil
	case version != "" && older(version, "v0.23.0"):
		return V12, nil
	case version != "" || names["reconcilers.UpdatingObjectManager"]:
		return Runtime, nil
	case !imported[reconcilerRuntime]:
		return V12, nil
	case names["reconcilers.ParentReconciler"] || names["testing.Factory"]:
		return V01, nil
	case names["reconcilers.generic"]:
		return V12, nil
	}
	return V06, nil
}
