// SPDX-License-Identifier: Apache-2.0

//go:build staging

package controlplane

// k8s.io/kubernetes requires its staging modules at v0.0.0 and replaces them with its own directories, which only works
// in its own module. Therefore go.mod requires each of them at the matching version, so that neither this module nor
// one that imports it needs a replace directive. These imports, in a file that is never built, keep "go mod tidy" from
// removing the requirements that no other file uses.
import (
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "k8s.io/code-generator"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
	_ "k8s.io/sample-cli-plugin/pkg/cmd"
	_ "k8s.io/sample-controller/pkg/signals"
)
