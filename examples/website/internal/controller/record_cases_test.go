// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

const recheck = time.Minute

func TestRecordReconciler(t *testing.T) {
	held := rtesting.With(shop, finalizer)
	address := map[stash.Key]any{controller.AddressStash.Key(): addressed.Spec.ClusterIP}
	ours := dns.Record{Name: shop.Spec.Domain, Target: addressed.Spec.ClusterIP, Owner: "cases/shop"}
	theirs := dns.Record{Name: shop.Spec.Domain, Target: "198.18.1.1", Owner: "cases/another"}
	is := func(status metav1.ConditionStatus, reason, message string) func(*websitev1.Website) {
		return condition(websitev1.ConditionRecordReady, status, reason, message)
	}
	at := func(url string) func(*websitev1.Website) {
		return func(site *websitev1.Website) { site.Status.URL = url }
	}
	again := reconcilers.Result{RequeueAfter: recheck}

	// records contains, by the name of a case, the published records before and after it.
	records := map[string]struct {
		before, after []dns.Record
		err           error
	}{
		"it is published after a finalizer is added": {after: []dns.Record{ours}},
		"it is published already":                    {before: []dns.Record{ours}, after: []dns.Record{ours}},
		"the domain has changed": {
			before: []dns.Record{{Name: "old.example.com", Target: ours.Target, Owner: ours.Owner}}, after: []dns.Record{ours},
		},
		"the domain is taken": {before: []dns.Record{theirs}, after: []dns.Record{theirs}},
		"publishing fails":    {err: errBroken},
		"it is withdrawn":     {before: []dns.Record{ours}},
		"withdrawing fails":   {before: []dns.Record{ours}, after: []dns.Record{ours}, err: errBroken},
	}
	cases := subCases{
		"without an address, nothing is published": {
			Resource: held,
			ExpectResource: rtesting.With(
				held, is(metav1.ConditionUnknown, "NoAddress", "no address for shop.example.com"),
			),
		},
		"it is published after a finalizer is added": {
			Resource:           shop,
			GivenStashedValues: address,
			ExpectPatches: []rtesting.PatchRef{{
				Group: "demo.trueup.dev", Kind: "Website", Namespace: "cases", Name: "shop", PatchType: types.MergePatchType,
				Patch: []byte(`{"metadata":{"finalizers":["demo.trueup.dev/dns-record"],"resourceVersion":"999"}}`),
			}},
			ExpectEvents: []rtesting.Event{rtesting.NewEvent(shop, scheme(), corev1.EventTypeNormal, "FinalizerPatched",
				`Patched finalizer "demo.trueup.dev/dns-record"`)},
			ExpectResource: rtesting.With(held, is(metav1.ConditionTrue, "Published", ""), at("http://shop.example.com")),
			ExpectedResult: again,
		},
		"it is published already": {
			Resource:           held,
			GivenStashedValues: address,
			ExpectResource:     rtesting.With(held, is(metav1.ConditionTrue, "Published", ""), at("http://shop.example.com")),
			ExpectedResult:     again,
		},
		"the domain has changed": {
			Resource:           held,
			GivenStashedValues: address,
			ExpectResource:     rtesting.With(held, is(metav1.ConditionTrue, "Published", ""), at("http://shop.example.com")),
			ExpectedResult:     again,
		},
		"the domain is taken": {
			Resource:           rtesting.With(held, at("http://old.example.com")),
			GivenStashedValues: address,
			ExpectResource: rtesting.With(held, is(metav1.ConditionFalse, "DomainTaken",
				`publish shop.example.com: name is taken by cases/another`)),
			ExpectedResult: again,
		},
		"publishing fails": {
			Resource:           held,
			GivenStashedValues: address,
			ExpectResource:     rtesting.With(held, is(metav1.ConditionFalse, "PublishFailed", errBroken.Error())),
			ShouldErr:          true,
		},
		"it is withdrawn": {
			Resource: leavingShop,
			ExpectPatches: []rtesting.PatchRef{{
				Group: "demo.trueup.dev", Kind: "Website", Namespace: "cases", Name: "shop", PatchType: types.MergePatchType,
				Patch: []byte(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
			}},
			ExpectEvents: []rtesting.Event{rtesting.NewEvent(shop, scheme(), corev1.EventTypeNormal, "FinalizerPatched",
				`Patched finalizer "demo.trueup.dev/dns-record"`)},
			ExpectResource: rtesting.With(leavingShop, func(site *websitev1.Website) { site.Finalizers = nil }),
		},
		"withdrawing fails": {Resource: leavingShop, ShouldErr: true},
	}
	onBoth(t, func(t *testing.T, options ...rtesting.RunOption) {
		cases.Run(t, scheme(), func(t *testing.T, tc *subCase, _ reconcilers.Config) subReconcile {
			want := records[tc.Name]
			directory := dns.NewDirectory(t.TempDir())
			for _, record := range want.before {
				if err := directory.Publish(t.Context(), record); err != nil {
					t.Fatal(err)
				}
			}
			tc.CleanUp = func(_ *testing.T, ctx context.Context, _ *subCase) error {
				return published(ctx, directory, want.after, append(want.before, ours))
			}
			return controller.RecordReconciler(failingBook{Provider: directory, err: want.err}, recheck)
		}, options...)
	})
}

// published returns an error unless exactly these of all records are published.
func published(ctx context.Context, records dns.Provider, want, all []dns.Record) error {
	errs := []error{}
	for _, record := range all {
		found, err := records.Lookup(ctx, record.Name)
		switch {
		case errors.Is(err, dns.ErrNotFound):
			found = dns.Record{}
		case err != nil:
			errs = append(errs, err)
		}
		expected := dns.Record{}
		for _, w := range want {
			if w.Name == record.Name {
				expected = w
			}
		}
		if found != expected {
			errs = append(errs, fmt.Errorf("the record of %s leads to %s for %s, want %s for %s",
				record.Name, found.Target, found.Owner, expected.Target, expected.Owner))
		}
	}
	return errors.Join(errs...)
}

// failingBook fails with err, if it is not nil.
type failingBook struct {
	dns.Provider
	err error
}

func (b failingBook) Publish(ctx context.Context, record dns.Record) error {
	if b.err != nil {
		return b.err
	}
	return b.Provider.Publish(ctx, record)
}

func (b failingBook) Withdraw(ctx context.Context, owner string) error {
	if b.err != nil {
		return b.err
	}
	return b.Provider.Withdraw(ctx, owner)
}
