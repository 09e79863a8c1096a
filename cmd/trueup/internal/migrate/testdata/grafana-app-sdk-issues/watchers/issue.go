// SPDX-License-Identifier: Apache-2.0

// Package watchers handles Issues.
package watchers

import (
	"context"
	"fmt"
	"time"

	"github.com/grafana/grafana-app-sdk/logging"
	"github.com/grafana/grafana-app-sdk/operator"
	"github.com/grafana/grafana-app-sdk/resource"

	v1 "example.com/issues/v1"
)

// Info is another system.
type Info interface {
	Apply(namespace, name, title string) error
	Delete(namespace, name string) error
}

// NewIssueReconciler sends titles to another system.
func NewIssueReconciler(info Info, store *resource.TypedStore[*v1.Issue]) operator.Reconciler {
	return &operator.TypedReconciler[*v1.Issue]{
		ReconcileFunc: func(ctx context.Context, req operator.TypedReconcileRequest[*v1.Issue]) (operator.ReconcileResult, error) {
			logging.FromContext(ctx).Info("Reconcile request", "name", req.Object.GetName(), "action", operator.ResourceActionFromReconcileAction(req.Action))
			if req.Action == operator.ReconcileActionDeleted {
				return operator.ReconcileResult{}, info.Delete(req.Object.GetNamespace(), req.Object.GetName())
			}
			if req.Object.GetGeneration() == req.Object.Status.LastAppliedGeneration {
				return operator.ReconcileResult{}, nil
			}
			if err := info.Apply(req.Object.GetNamespace(), req.Object.GetName(), req.Object.Spec.Title); err != nil {
				// try again in a bit
				after := time.Minute
				return operator.ReconcileResult{
					RequeueAfter: &after,
				}, nil
			}
			req.Object.Status.LastAppliedGeneration = req.Object.GetGeneration()
			_, err := store.UpdateSubresource(ctx, req.Object.GetStaticMetadata().Identifier(), resource.SubresourceStatus, req.Object)
			return operator.ReconcileResult{}, err
		},
	}
}

// NewIssueWatcher is the same as a watcher.
func NewIssueWatcher(info Info) operator.ResourceWatcher {
	return &operator.SimpleWatcher{
		AddFunc: func(ctx context.Context, obj resource.Object) error {
			issue, ok := obj.(*v1.Issue)
			if !ok {
				return fmt.Errorf("unable to cast object into *v1.Issue")
			}
			return info.Apply(issue.GetNamespace(), issue.GetName(), issue.Spec.Title)
		},
		DeleteFunc: func(ctx context.Context, obj resource.Object) error {
			return info.Delete(obj.GetNamespace(), obj.GetName())
		},
	}
}
