// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/examples/website"
	"trueup.dev/plan"
)

// What does a plan say about the record of a site, and does it leave the record alone?
func TestPlan(t *testing.T) {
	e := newEnv(t)
	site := newSite("shop")
	e.Add(site)
	planned := func() []string {
		t.Helper()
		made, err := plan.Run(e.Context(), e.Client, func(ctx context.Context, mgr ctrl.Manager) error {
			return website.SetupWithManager(ctx, mgr, website.Options{Records: e.records})
		}, plan.Request{Namespace: e.Namespace, Name: "shop"})
		e.Must(err)
		var lines []string
		for line := range strings.Lines(made.Text()) {
			if strings.HasPrefix(line, "*") || strings.HasPrefix(line, "!") || strings.HasPrefix(line, "No changes.") {
				lines = append(lines, strings.TrimSpace(strings.ReplaceAll(line, e.Namespace, "NS")))
			}
		}
		return lines
	}
	if diff := cmp.Diff([]string{"* outside of Kubernetes: publish shop.example.com for NS/shop"}, planned()); diff != "" {
		t.Errorf("a new site (-want +got):\n%s", diff)
	}
	if n := e.records.published.Load(); n > 0 {
		t.Errorf("the plan has published %d records", n)
	}

	stop := e.startController()
	e.ready("shop")
	stop()
	got := planned()
	if len(got) != 1 || !strings.HasPrefix(got[0], "No changes.") {
		t.Errorf("plan of a published site: %q", got)
	}

	e.Must(e.Delete(e.Context(), site))
	if diff := cmp.Diff([]string{"* outside of Kubernetes: withdraw the records of NS/shop"}, planned()); diff != "" {
		t.Errorf("a deleted site (-want +got):\n%s", diff)
	}
	if _, err := e.records.Lookup(e.Context(), "shop.example.com"); err != nil {
		t.Errorf("the plan has withdrawn the record: %v", err)
	}
}
