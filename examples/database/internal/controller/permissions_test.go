// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/examples/database"
	"trueup.dev/examples/database/backup"
	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	rtesting "trueup.dev/testing"
)

// declared returns the permissions that the reconcilers declare.
func declared(t *testing.T) rbac.Permissions {
	t.Helper()
	g, err := graph.Record(t.Context(), newScheme(t), func(ctx context.Context, mgr ctrl.Manager) error {
		return database.SetupWithManager(ctx, mgr, database.Options{Backups: &backup.Fake{}})
	})
	if err != nil {
		t.Fatal(err)
	}
	permissions, err := rbac.Declared(g, rbac.Options{LeaderElection: true})
	if err != nil {
		t.Fatal(err)
	}
	return permissions
}

// "make generate" writes the role. The controllers of all tests have exactly its permissions.
func TestPermissions_IsTheRoleUpToDate(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(declared(t).Rules(), readRole(t).Rules); diff != "" {
		t.Errorf("role.yaml differs from what the reconcilers need; run make generate (-reconcilers +role):\n%s", diff)
	}
}

// usedByCases records what the cases of the reconciler need.
var usedByCases rbac.Recorder

// What would it need permission for? The requests of the life of a Database need nothing that the reconcilers do not
// declare. The log lists what they do not use, for example update: nothing changes the children.
func TestPermissions_WhatDoesItUse(t *testing.T) {
	e := newEnv(t)
	stop := e.startController()
	e.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-tls"},
		Data:       map[string][]byte{corev1.TLSCertKey: {1}, corev1.TLSPrivateKeyKey: {2}},
	})
	e.Add(rtesting.With(newDatabase(), withBackup, withTLS, withReplicas(2)))
	db := e.ready("shop")
	e.Must(e.Delete(e.Context(), db))
	e.WaitForDeletion(db)
	stop()
	// So do the cases of the reconciler, and a scenario with faults.
	t.Run("cases", TestDatabaseReconciler)
	scenario, usedByScenario := databaseScenario(t), &rbac.Recorder{}
	scenario.Given, scenario.Permissions = []client.Object{inDefault(newDatabase())}, usedByScenario
	found, err := converge.Check(t, scenario, converge.Options{Seed: 1, SingleRequests: 500})
	if err != nil || found.Failure != nil {
		t.Fatal(err, found)
	}
	rtesting.AssertPermissions(t, e.role.Rules, declared(t), &e.requests, &usedByCases, usedByScenario)

	used := e.requests.Used()
	// The recorders have seen the controller.
	certain := rbac.Of(
		rbac.Permission{Group: "database.trueup.dev", Resource: "databases", Verb: "watch"},
		rbac.Permission{Group: "database.trueup.dev", Resource: "databases", Verb: "patch"},
		rbac.Permission{Group: "database.trueup.dev", Resource: "databases/status", Verb: "update"},
		rbac.Permission{Group: "apps", Resource: "statefulsets", Verb: "get"}, // before the final backup
		rbac.Permission{Group: "apps", Resource: "statefulsets", Verb: "create"},
		rbac.Permission{Group: "apps", Resource: "statefulsets", Verb: "delete"},
		rbac.Permission{Resource: "secrets", Verb: "watch"},
		rbac.Permission{Resource: "events", Verb: "create"},
	)
	if err := rbac.Check(used.Rules(), certain, nil).Err(); err != nil {
		t.Errorf("as a role, the used permissions are incomplete: %v", err)
	}
	certain = rbac.Of(
		rbac.Permission{Group: "database.trueup.dev", Resource: "databases/status", Verb: "update"},
		rbac.Permission{Group: "apps", Resource: "statefulsets", Verb: "create"},
	)
	for _, recorder := range []*rbac.Recorder{&usedByCases, usedByScenario} {
		if err := rbac.Check(recorder.Used().Rules(), certain, nil).Err(); err != nil {
			t.Errorf("as a role, the used permissions are incomplete: %v", err)
		}
	}
}
