// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// factsOf describes a request. changed is set if it may have changed something.
func (w *world) factsOf(c *call, err error, changed bool) explain.Facts {
	f := explain.Facts{
		Act: c.Act, Kind: c.gvk, Reason: apierrs.ReasonForError(err), Effect: changed && (c.obj != nil || c.effect),
	}
	if list, ok := c.out.(client.ObjectList); ok {
		f.Items = meta.LenList(list)
	}
	switch words := strings.Fields(c.Kind); {
	case c.outside && len(words) == 3 && words[0] == "cloud": // a call of Cloud
		f.Act, f.Object = words[1], "cloud "+words[2]
	case c.outside:
		f.Object = c.Kind
	case c.Key.Name != "":
		f.Object = c.gvk.Kind + " " + phrase.Name(w.keyOfCall(c))
	}
	if c.obj != nil {
		f.Unowned = len(c.obj.GetOwnerReferences()) == 0
	}
	return f
}

// isRetried reports whether the request of a reconcile that has ended is queued again.
func (a *activity) isRetried() bool {
	return a.err != nil && !isTerminal(a.err) || a.panicked != nil || a.result.RequeueAfter > 0 ||
		a.result.Requeue //nolint:staticcheck // reconcilers still ask for it
}

// keyOfCall returns the key of the object of a call, with the prefix of a generated name instead of the name.
func (w *world) keyOfCall(c *call) types.NamespacedName {
	if c.obj != nil && c.obj.GetGenerateName() != "" && strings.HasPrefix(c.Key.Name, c.obj.GetGenerateName()) {
		return types.NamespacedName{Namespace: c.Key.Namespace, Name: c.obj.GetGenerateName() + "*"}
	}
	return w.generated.Key(c.Key)
}

// changeOf describes what a write has changed, as far as a line has room for.
func (w *world) changeOf(c *call) string {
	for _, e := range slices.Backward(w.server.Events(w.forwarded)) {
		if e.Kind != c.gvk || e.Type != watch.Modified || e.Key != client.ObjectKeyFromObject(c.obj) {
			continue
		}
		return explain.ChangeText(explain.ContentOf(e.Old), explain.ContentOf(e.Object), e.Kind.Kind == "Secret")
	}
	return ""
}

// unforwarded describes the last change whose event is not forwarded yet, or returns "".
func (w *world) unforwarded() string {
	events := w.server.Events(w.forwarded)
	if len(events) == 0 {
		return ""
	}
	e := events[len(events)-1]
	text := fmt.Sprintf("%s %s %s", inject.EventNames[e.Type], e.Kind.Kind, phrase.Name(e.Key))
	if e.Type == watch.Modified {
		text = "ok, version " + e.Object.GetResourceVersion() + explain.ChangeText(
			explain.ContentOf(e.Old), explain.ContentOf(e.Object), e.Kind.Kind == "Secret",
		)
	}
	return text
}
