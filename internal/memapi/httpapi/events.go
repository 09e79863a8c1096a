// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var (
	eventKind     = corev1.SchemeGroupVersion.WithKind("Event")
	newEventKind  = eventsv1.SchemeGroupVersion.WithKind("Event")
	fieldsOfEvent = map[string]string{
		"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent",
		"deprecatedSource": "source", "deprecatedFirstTimestamp": "firstTimestamp",
		"deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
	}
)

// asCoreEvent changes a request for an event of events.k8s.io to one for the event of the core group that is the same
// object. Fields of its body are renamed when it is read, and fields of the response are renamed by asNewEvent.
func (t *Transport) asCoreEvent(r *request) {
	core, ok := t.Registry.For(eventKind)
	if !ok || r.kind.GroupVersionKind != newEventKind {
		return
	}
	r.kind, r.newEvent = core, true
	if selector := r.query.Get("fieldSelector"); selector != "" {
		for name, coreName := range fieldsOfEvent {
			selector = strings.ReplaceAll(selector, name+".", coreName+".")
			selector = strings.ReplaceAll(selector, name+"=", coreName+"=")
		}
		r.query.Set("fieldSelector", selector)
	}
}

// renameEvent renames the fields of an event or of a patch, to the core group or from it.
func renameEvent(content map[string]any, toCore bool) {
	for name, coreName := range fieldsOfEvent {
		from, to := coreName, name
		if toCore {
			from, to = name, coreName
		}
		if value, found := content[from]; found {
			delete(content, from)
			content[to] = value
		}
	}
	if content["kind"] == nil {
		return
	}
	if content["apiVersion"] = newEventKind.GroupVersion().String(); toCore {
		content["apiVersion"] = eventKind.GroupVersion().String()
	}
}

// eventPatch returns the patch of a core event for one of an event of events.k8s.io.
func eventPatch(kind types.PatchType, data []byte) ([]byte, error) {
	if kind != types.MergePatchType && kind != types.StrategicMergePatchType {
		return nil, NotImplemented("patches events of events.k8s.io only with merge patches")
	}
	content := map[string]any{}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	renameEvent(content, true)
	return json.Marshal(content)
}

// asNewEvent returns the content of a response as events of events.k8s.io.
func asNewEvent(content any) any {
	switch content := content.(type) {
	case *unstructured.Unstructured:
		renameEvent(content.Object, false)
	case *unstructured.UnstructuredList:
		content.SetAPIVersion(newEventKind.GroupVersion().String())
		for i := range content.Items {
			renameEvent(content.Items[i].Object, false)
		}
	case *stream:
		content.newEvent = true
	}
	return content
}
