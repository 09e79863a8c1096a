// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
)

// page is the number of objects in one list request.
const page = 1000

// verifyParents checks every parent. It returns an error unless the number of parents is as expected.
func verifyParents(ctx context.Context, live client.Reader, count int, look func(w *api.Widget) error) error {
	seen, next := 0, ""
	for {
		list := &api.WidgetList{}
		if err := live.List(
			ctx, list, client.InNamespace(lab.Namespace), client.Limit(page), client.Continue(next),
		); err != nil {
			return err
		}
		for i := range list.Items {
			w := &list.Items[i]
			if w.Status.ObservedGeneration != w.Generation {
				return fmt.Errorf(
					"widget %s: the status is of generation %d, want %d", w.Name, w.Status.ObservedGeneration, w.Generation,
				)
			}
			if err := look(w); err != nil {
				return fmt.Errorf("widget %s: %w", w.Name, err)
			}
		}
		seen += len(list.Items)
		if next = list.Continue; next == "" {
			break
		}
	}
	if seen != count {
		return fmt.Errorf("%d widgets exist, want %d", seen, count)
	}
	return nil
}

// verifyChildren returns an error unless every parent owns exactly the children with these names, with its data in
// them.
func verifyChildren(ctx context.Context, live client.Reader, parents int, names func(w *api.Widget) []string) error {
	children, err := liveConfigMaps(ctx, live)
	if err != nil {
		return err
	}
	if err := verifyParents(ctx, live, parents, func(w *api.Widget) error {
		for _, name := range names(w) {
			child := children[name]
			switch {
			case child == nil:
				return fmt.Errorf("child %s does not exist", name)
			case !metav1.IsControlledBy(child, w):
				return fmt.Errorf("child %s has another owner", name)
			case !maps.Equal(child.Data, w.Spec.Data):
				return fmt.Errorf("child %s has different data", name)
			}
			delete(children, name)
		}
		return nil
	}); err != nil {
		return err
	}
	for name := range children {
		return fmt.Errorf("%d ConfigMaps have no owner, for example %s", len(children), name)
	}
	return nil
}

// clusterName is the ConfigMap that a controller of Kubernetes creates in every namespace.
const clusterName = "kube-root-ca.crt"

func liveConfigMaps(ctx context.Context, live client.Reader) (map[string]*corev1.ConfigMap, error) {
	found, next := map[string]*corev1.ConfigMap{}, ""
	for {
		list := &corev1.ConfigMapList{}
		if err := live.List(
			ctx, list, client.InNamespace(lab.Namespace), client.Limit(page), client.Continue(next),
		); err != nil {
			return nil, err
		}
		for i := range list.Items {
			found[list.Items[i].Name] = &list.Items[i]
		}
		if next = list.Continue; next == "" {
			delete(found, clusterName)
			return found, nil
		}
	}
}

// verifySeen returns an error unless the status of every parent names the source.
func verifySeen(ctx context.Context, live client.Reader, parents int) error {
	return verifyParents(ctx, live, parents, func(w *api.Widget) error {
		if w.Status.Child != sourceName {
			return errors.New("the status does not name its source")
		}
		return nil
	})
}
