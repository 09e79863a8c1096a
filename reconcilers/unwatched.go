// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/duck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/observe"
)

// warnUnwatched reports a reference to an object of a kind that the controller does not watch. Once for each kind, it
// logs the line of code to add.
func (c Config) warnUnwatched(ctx context.Context, watched *watched, kind schema.GroupKind, tracked runtime.Object) {
	c.Hub().Report(ctx, &observe.TrackedUnwatched{Reconciler: watched.reconciler, Kind: kind})
	if watched.warnOnce(kind) {
		line := c.watchLine(ctx, tracked)
		c.Hub().Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: fmt.Sprintf(
			"objects of kind %s are tracked and not watched, so their changes do not reconcile those that track them; "+
				"add to Setup: %s", kind, line)})
		logr.FromContextOrDiscard(ctx).Info("the kind of a tracked object is not watched, its changes will not trigger the "+
			"resource",
			"kind", kind.String(), "add to Setup", line)
	}
}

// watchLine returns a line of Go that watches the kind of an object, or of the objects in a list.
func (c Config) watchLine(ctx context.Context, tracked runtime.Object) string {
	gvk, err := c.GroupVersionKindFor(tracked)
	if err != nil {
		return ""
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	object, method := c.goLiteral(gvk, tracked)
	if root := scopeFrom(ctx).originalConfig; root != nil && root.cache != c.cache {
		return fmt.Sprintf(
			"bldr.WatchesRawSource(source.Kind[client.Object](cluster.GetCache(), %s, reconcilers.EnqueueTracked(ctx)))", object,
		)
	}
	return fmt.Sprintf("bldr.%s(%s, reconcilers.EnqueueTracked(ctx))", method, object)
}

// goLiteral returns a Go literal of an object of a kind, in the form in which it was tracked, and the builder method
// that watches it.
func (c Config) goLiteral(gvk schema.GroupVersionKind, tracked runtime.Object) (literal, method string) {
	method = "Watches"
	_, untyped := tracked.(runtime.Unstructured)
	made, err := c.Scheme().New(gvk)
	switch tracked.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		if err != nil {
			return fmt.Sprintf(
				"&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: %q, Kind: %q}}", gvk.GroupVersion(), gvk.Kind,
			), method
		}
		method = "WatchesMetadata"
	default:
		if err != nil || untyped || duck.IsDuck(tracked, c.Scheme()) {
			return fmt.Sprintf(
				`&unstructured.Unstructured{Object: map[string]any{"apiVersion": %q, "kind": %q}}`, gvk.GroupVersion(), gvk.Kind,
			), method
		}
	}
	return "&" + goName(reflect.TypeOf(made).Elem()) + "{}", method
}

var apiVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// goName returns the name of a type with its usual import name, for example corev1 for k8s.io/api/core/v1.
func goName(t reflect.Type) string {
	dir, name := path.Split(t.PkgPath())
	if apiVersion.MatchString(name) {
		group := path.Base(dir)
		if end := strings.IndexFunc(group, func(r rune) bool { return r == '.' || r == '-' }); end > 0 {
			group = group[:end]
		}
		return group + name + "." + t.Name()
	}
	return t.String()
}
