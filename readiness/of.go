// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of reports how ready an object is. The package comment lists the rules. The result is the same for a typed object and
// for an unstructured one. Of does not change the object, and is safe for concurrent use.
func Of(obj client.Object) Readiness {
	if obj.GetDeletionTimestamp() != nil {
		return terminating(obj)
	}
	if r, ok := ofBuiltIn(obj); ok {
		return r
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return ofMetadata(gvk)
	}
	if isTyped(obj) {
		return ready("") // a built-in kind without a rule
	}
	content, ok := contentOf(obj)
	if !ok {
		return unknown("unable to read the object")
	}
	if builtIn, err := scheme.Scheme.New(gvk); err == nil {
		if runtime.DefaultUnstructuredConverter.FromUnstructured(content, builtIn) != nil {
			return unknown("the object is not a valid %s", gvk.Kind)
		}
		if r, ok := ofBuiltIn(builtIn); ok {
			return r
		}
		return ready("")
	}
	kind := gvk.GroupKind()
	if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		kind = kindOfDefinitions
	}
	return ofContent(kind, content)
}

// Observed returns a rule that applies another rule only to objects that are not being deleted and whose
// status.observedGeneration, if they have one, is that of their current generation. Otherwise the object is Terminating
// or Progressing.
func Observed(rule Rule) Rule { return observing{rule} }

type observing struct{ rule Rule }

func (o observing) Of(obj client.Object) Readiness {
	if obj.GetDeletionTimestamp() != nil {
		return terminating(obj)
	}
	if content, ok := contentOf(obj); ok {
		if generation, number, reported := generations(content); reported {
			if r, ok := observed(generation, number); !ok {
				return r
			}
		}
	}
	return o.rule.Of(obj)
}

// Validate validates the rule, if it has a Validate method.
func (o observing) Validate(ctx context.Context) error {
	if rule, ok := o.rule.(interface {
		Validate(ctx context.Context) error
	}); ok {
		return rule.Validate(ctx)
	}
	return nil
}

// terminating names the finalizers that keep an object.
func terminating(obj client.Object) Readiness {
	r := Readiness{State: Terminating, Reason: ReasonTerminating, Message: "is being deleted"}
	if names := obj.GetFinalizers(); len(names) > 0 {
		r.Message += ", and has the finalizers " + strings.Join(names, ", ")
	}
	return r
}

// isTyped reports whether the Go type of an object is the type of a built-in kind.
func isTyped(obj client.Object) bool {
	if _, ok := obj.(runtime.Unstructured); ok {
		return false
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	return err == nil && len(gvks) > 0
}

// ofMetadata reports how ready an object is if only its metadata is known.
func ofMetadata(gvk schema.GroupVersionKind) Readiness {
	if obj, err := scheme.Scheme.New(gvk); err == nil {
		if _, hasRule := ofBuiltIn(obj); !hasRule {
			return ready("")
		}
	}
	return unknown("only the metadata of the object is known")
}

// contentOf returns the fields of an object. The caller must not change them.
func contentOf(obj client.Object) (map[string]any, bool) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	return content, err == nil
}

// observed reports whether the status of an object describes its current generation, or otherwise what is waited for. A
// status of an older generation may report that all is well. The status of an object that was restored from a backup
// may be of a later generation than the object, which starts at 1 again.
func observed(generation, observedGeneration int64) (Readiness, bool) {
	switch {
	case observedGeneration == generation, generation == 0:
		return Readiness{}, true
	case observedGeneration > generation:
		return progressing(
			ReasonNotObserved, "generation %d is not observed yet, the status is about generation %d of a former object",
			generation, observedGeneration,
		), false
	}
	return progressing(ReasonNotObserved, "generation %d is not observed yet", generation), false
}
