// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
)

// CRDsOrDie reads the definitions of custom resources from files or directories of a module, see [converge.CRDsOrDie].
func CRDsOrDie(module string, paths ...string) []client.Object {
	directory, err := directoryOf(module)
	if err != nil {
		panic(err)
	}
	for i, path := range paths {
		paths[i] = filepath.Join(directory, path)
	}
	return converge.CRDsOrDie(paths...)
}

func directoryOf(module string) (string, error) { return list(module, "{{.Dir}}") }

func versionOf(module string) (string, error) { return list(module, "{{.Version}}") }

// list returns a field of a module of the build list.
func list(module, field string) (string, error) {
	out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", field, module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// licenseOf returns the SPDX identifier of the license of a module.
func licenseOf(module string) (string, error) {
	directory, err := directoryOf(module)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(directory, "LICENSE"))
	if err != nil {
		return "", err
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	if strings.HasPrefix(words, "Apache License Version 2.0,") {
		return "Apache-2.0", nil
	}
	return "", fmt.Errorf("%s: unknown license", module)
}
