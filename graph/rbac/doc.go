// SPDX-License-Identifier: Apache-2.0

// Package rbac derives the permissions of a controller from its graph, and compares them with a role and with the
// requests of a run.
//
// [Declared] returns the permissions that the reconcilers of a graph declare. [Permissions.ClusterRole] and
// [Permissions.Markers] write them as a role and as markers of Kubebuilder; so does the command "trueup rbac".
//
// [NewControllerRing] returns the manifest for a program whose objects are divided among several replicas.
//
// A [Recorder] collects the permissions that are used: by the requests of a REST config, by the calls of controllers,
// by test cases and by scenarios. [Check] compares a role with both. In a test, AssertPermissions of package
// trueup.dev/testing does so:
//
//	recorder := &rbac.Recorder{}
//	config.Wrap(recorder.Wrap)
//	// run the controller with config
//	report := rbac.Check(role.Rules, declared, recorder.Used())
//	if err := report.Err(); err != nil {
//		t.Error(err)
//	}
package rbac
