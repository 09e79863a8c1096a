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

	"trueup.dev/benchmarks/internal/api"
	"trueup.dev/benchmarks/internal/lab"
)

// page is how many objects are asked for at once.
const page = 1000

// verifyParents looks at every parent, and fails unless there are as many as there should be.
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
					"widget %s: the status is about generation %d of %d", w.Name, w.Status.ObservedGeneration, w.Generation,
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
		return fmt.Errorf("there are %d widgets instead of %d", seen, count)
	}
	return nil
}

// verifyChildren fails unless every parent owns the children of these names, with its data in them, and there are no
// others.
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
				return fmt.Errorf("it has no child %s", name)
			case !metav1.IsControlledBy(child, w):
				return fmt.Errorf("the child %s is not its own", name)
			case !maps.Equal(child.Data, w.Spec.Data):
				return fmt.Errorf("the child %s has other data", name)
			}
			delete(children, name)
		}
		return nil
	}); err != nil {
		return err
	}
	for name := range children {
		return fmt.Errorf("%d ConfigMaps are nobody's, one of them is %s", len(children), name)
	}
	return nil
}

// clusterName is the ConfigMap that a controller of clusters puts into every namespace.
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

// verifySeen fails unless the status of every parent tells of the source.
func verifySeen(ctx context.Context, live client.Reader, parents int) error {
	return verifyParents(ctx, live, parents, func(w *api.Widget) error {
		if w.Status.Child != sourceName {
			return errors.New("it has not seen its source")
		}
		return nil
	})
}
