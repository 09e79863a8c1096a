// SPDX-License-Identifier: Apache-2.0

//go:build staging

package controlplane

// k8s.io/kubernetes requires its staging modules at v0.0.0 and replaces them with its own folders, which holds for nobody else. go.mod
// therefore names each of them at the version that belongs to it, so that neither this module nor one that imports it needs a replace.
// These imports, in a file that is never built, keep "go mod tidy" from dropping the ones no other file uses.
import (
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "k8s.io/code-generator"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
	_ "k8s.io/sample-cli-plugin/pkg/cmd"
	_ "k8s.io/sample-controller/pkg/signals"
)
