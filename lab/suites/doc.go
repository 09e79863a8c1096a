// SPDX-License-Identifier: Apache-2.0

// Package suites runs the integration suites of controller-runtime, which are written for envtest, on the control plane
// of trueup. Their source is in the module of controller-runtime, at the version in go.mod. Nothing in it is changed.
//
// There are two modes:
//
//   - bare: KUBEBUILDER_ASSETS is the directory of [trueup.dev/sandbox.EnvtestAssets]. envtest starts etcd and
//     kube-apiserver as usual, and there are no controllers and no pods.
//   - default: USE_EXISTING_CLUSTER and a control plane of the sandbox with its controllers and with pods.
//
// The directory testdata has a file for each mode: how many specs each suite has, and which fail, with the reason. The
// test fails if a spec fails that is not listed, and if a listed one passes. Only failures that are a race between the
// suite and a controller may pass. "make envtest-suites" runs all suites in both modes. Without the flag -suites.all,
// the test runs only two suites that take a few seconds, in bare mode.
package suites
