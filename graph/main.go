// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
)

// Variable is the environment variable that names the file to which [Main] writes the graph as JSON. The command
// "trueup graph" sets it.
const Variable = "TRUEUP_GRAPH"

// Main writes the graph of a program as JSON to the file that the environment variable TRUEUP_GRAPH names, and ends the
// process. It returns immediately if the variable is not set. Call it in the main function, before the program connects
// to a cluster, with the function that adds the controllers and webhooks to a manager:
//
//	func main() {
//		graph.Main(scheme, setUp)
//		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
//		…
//		err = setUp(ctx, mgr)
//
// The exit code is 1 after an error, which is printed to standard error.
func Main(scheme *runtime.Scheme, setUp SetUp) {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	if err := write(path, scheme, setUp); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func write(path string, scheme *runtime.Scheme, setUp SetUp) error {
	g, err := Record(context.Background(), scheme, setUp)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil { //nolint:gosec // it contains no secrets
		return fmt.Errorf("graph: %s: %w", Variable, err)
	}
	return nil
}
