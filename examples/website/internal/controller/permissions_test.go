// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	rtesting "trueup.dev/testing"
)

// declared returns the permissions that the reconcilers and the webhooks declare.
func declared(t *testing.T) rbac.Permissions {
	t.Helper()
	g, err := graph.Record(t.Context(), newScheme(t), func(ctx context.Context, mgr ctrl.Manager) error {
		return errors.Join(
			website.SetupWithManager(ctx, mgr, website.Options{Records: &recordBook{}}), website.SetupWebhooks(ctx, mgr),
		)
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

// What would it need permission for? The life of a Website in a cluster, and a scenario with faults, need nothing that
// the role does not grant.
func TestPermissions_WhatDoesItUse(t *testing.T) {
	e := newEnv(t)
	stop := e.startController()
	site := newSite("shop")
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	e.Add(newTheme("paper", "h1 {}"), site)
	e.Must(e.Delete(e.Context(), e.ready("shop")))
	e.WaitForDeletion(site)
	stop()

	usedByScenario := &rbac.Recorder{}
	scenario, given := siteScenario(t), newSite("shop")
	given.Namespace = metav1.NamespaceDefault
	scenario.Given, scenario.Permissions = []client.Object{given}, usedByScenario
	found, err := converge.Check(t, scenario, converge.Options{Seed: 1, SingleRequests: 500})
	if err != nil || found.Failure != nil {
		t.Fatal(err, found)
	}
	rtesting.AssertPermissions(t, readRole(t).Rules, declared(t), &e.requests, usedByScenario)

	// The recorders have seen the controller.
	certain := rbac.Of(
		rbac.Permission{Group: "demo.trueup.dev", Resource: "websites", Verb: "watch"},
		rbac.Permission{Group: "demo.trueup.dev", Resource: "websites", Verb: "patch"},
		rbac.Permission{Group: "demo.trueup.dev", Resource: "websites/status", Verb: "update"},
		rbac.Permission{Group: "apps", Resource: "deployments", Verb: "create"},
	)
	for _, recorder := range []*rbac.Recorder{&e.requests, usedByScenario} {
		if err := rbac.Check(recorder.Used().Rules(), certain, nil).Err(); err != nil {
			t.Errorf("as a role, the used permissions are incomplete: %v", err)
		}
	}
}
