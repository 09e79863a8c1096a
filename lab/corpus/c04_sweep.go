// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// survivors are widgets with exports, of which one is deleted.
func survivors() converge.Scenario {
	s := exports()
	s.Given = append(s.Given, widget("weights", WidgetSpec{Data: map[string]string{"apple": "120"}}))
	s.Steps = converge.Steps(converge.Settle(), converge.Delete(widget("prices", WidgetSpec{})), converge.Settle())
	return s
}

// sweptExport checks once for copies whose widgets were deleted while no controller was running.
type sweptExport struct {
	eventExport
	swept bool
}

func (r *sweptExport) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if !r.swept {
		r.swept = true
		if err := r.sweep(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Cannot sweep.")
		}
	}
	return r.eventExport.Reconcile(ctx, req)
}

func (r *sweptExport) sweep(ctx context.Context) error {
	copies := &corev1.ConfigMapList{}
	if err := r.List(ctx, copies, client.InNamespace(exportNamespace), client.HasLabels{widgetLabel}); err != nil {
		return err
	}
	for _, cm := range copies.Items {
		key := client.ObjectKey{Namespace: namespace, Name: cm.Labels[widgetLabel]}
		err := r.Get(ctx, key, &Widget{})
		if apierrs.IsNotFound(err) {
			err = r.remove(ctx, key)
		}
		if err != nil {
			return fmt.Errorf("the copy of %s: %w", key, err)
		}
	}
	return nil
}
