// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/external"
	"trueup.dev/reconcilers"
)

// RecordReconciler publishes the domain in an external system, which garbage collection does not reach. Therefore it
// adds a finalizer to the site before it publishes the first record, and removes it after the last record is withdrawn.
func RecordReconciler(records dns.Provider, recheck time.Duration) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.WithFinalizer[*websitev1.Website]{
		Finalizer: websitev1.Finalizer,
		Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
			Name: "Record",
			SyncWithResult: func(ctx context.Context, site *websitev1.Website) (reconcilers.Result, error) {
				conditions := site.Status.ConditionManager(ctx)
				address := addressStash.RetrieveOrEmpty(ctx)
				if address == "" {
					conditions.MarkUnknown(
						websitev1.ConditionRecordReady, "NoAddress", "no address for %s", site.Spec.Domain,
					)
					return reconcilers.Result{}, nil
				}
				err := publish(ctx, records, dns.Record{Name: site.Spec.Domain, Target: address, Owner: owner(site)})
				switch {
				case errors.Is(err, dns.ErrTaken):
					site.Status.URL = ""
					conditions.MarkFalse(websitev1.ConditionRecordReady, "DomainTaken", "%s", err)
				case err != nil:
					conditions.MarkFalse(websitev1.ConditionRecordReady, "PublishFailed", "%s", err)
					return reconcilers.Result{}, err
				default:
					site.Status.URL = "http://" + site.Spec.Domain
					conditions.MarkTrue(websitev1.ConditionRecordReady, "Published", "")
				}
				// The external system sends no events: poll for changed records and for domains that became free.
				return reconcilers.Result{RequeueAfter: recheck}, nil
			},
			Finalize: func(ctx context.Context, site *websitev1.Website) error {
				if external.Announce(ctx, "withdraw the records of %s", owner(site)) {
					return nil
				}
				return records.Withdraw(ctx, owner(site))
			},
		},
	}
}

// publish publishes a record. In a plan, which must not have effects outside of Kubernetes, it only reads.
func publish(ctx context.Context, records dns.Provider, record dns.Record) error {
	if !external.InPlan(ctx) {
		return records.Publish(ctx, record)
	}
	current, err := records.Lookup(ctx, record.Name)
	switch {
	case errors.Is(err, dns.ErrNotFound):
	case err != nil:
		return err
	case current.Owner != record.Owner:
		return fmt.Errorf("%w by %s", dns.ErrTaken, current.Owner)
	}
	if current != record {
		external.Announce(ctx, "publish %s for %s", record.Name, record.Owner)
	}
	return nil
}

func owner(site *websitev1.Website) string { return client.ObjectKeyFromObject(site).String() }
