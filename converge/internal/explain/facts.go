// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
)

// factsOf describes a request. changed is set if it may have changed something.
func factsOf(w *world.World, c *world.Call, err error, changed bool) Facts {
	f := Facts{
		Act: c.Act, Kind: c.GVK, Reason: apierrs.ReasonForError(err), Effect: changed && (c.Obj != nil || c.Effect),
	}
	if list, ok := c.Out.(client.ObjectList); ok {
		f.Items = meta.LenList(list)
	}
	switch words := strings.Fields(c.Kind); {
	case c.Outside && len(words) == 3 && words[0] == "cloud": // a call of Cloud
		f.Act, f.Object = words[1], "cloud "+words[2]
	case c.Outside:
		f.Object = c.Kind
	case c.Key.Name != "":
		f.Object = c.GVK.Kind + " " + phrase.Name(keyOfCall(w, c))
	}
	if c.Obj != nil {
		f.Unowned = len(c.Obj.GetOwnerReferences()) == 0
	}
	return f
}

// keyOfCall returns the key of the object of a call, with the prefix of a generated name instead of the name.
func keyOfCall(w *world.World, c *world.Call) types.NamespacedName {
	if c.Obj != nil && c.Obj.GetGenerateName() != "" && strings.HasPrefix(c.Key.Name, c.Obj.GetGenerateName()) {
		return types.NamespacedName{Namespace: c.Key.Namespace, Name: c.Obj.GetGenerateName() + "*"}
	}
	return w.Generated.Key(c.Key)
}

// changeOf describes what a write has changed, as far as a line has room for.
func changeOf(w *world.World, c *world.Call) string {
	for _, e := range slices.Backward(w.Server.Events(w.Forwarded)) {
		if e.Kind != c.GVK || e.Type != watch.Modified || e.Key != client.ObjectKeyFromObject(c.Obj) {
			continue
		}
		return ChangeText(ContentOf(e.Old), ContentOf(e.Object), e.Kind.Kind == "Secret")
	}
	return ""
}

// unforwarded describes the last change whose event is not forwarded yet, or returns "".
func unforwarded(w *world.World) string {
	events := w.Server.Events(w.Forwarded)
	if len(events) == 0 {
		return ""
	}
	e := events[len(events)-1]
	text := fmt.Sprintf("%s %s %s", inject.EventNames[e.Type], e.Kind.Kind, phrase.Name(e.Key))
	if e.Type == watch.Modified {
		text = "ok, version " + e.Object.GetResourceVersion() + ChangeText(
			ContentOf(e.Old), ContentOf(e.Object), e.Kind.Kind == "Secret",
		)
	}
	return text
}
