// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

// conversionPath is the path of the webhook that converts versions. It is that of the builders of controller-runtime.
const conversionPath = "/convert"

// convert calls the conversion webhook that the version that runs registered last, in this run or in an earlier one:
// the caches of a process may need it before its set-up has ended. If it has registered none, that of an older version
// remains.
func (r *run) convert(review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	own := r.lessons.converters[r.running]
	if own == nil && r.running.converter == nil {
		own = r.converter
	}
	if own != nil {
		return convert(own, review)
	}
	return r.running.convert(review)
}

// convert calls the conversion webhook that was registered last in earlier runs. Until one is registered, the types of
// the scheme convert, as with the usual webhook.
func (p *plan) convert(review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	if p.converter != nil {
		return convert(p.converter, review)
	}
	return convert(p.usualConverter(), review)
}

// convert calls a conversion webhook.
func convert(
	handler http.Handler, review *apiextensionsv1.ConversionReview,
) (*apiextensionsv1.ConversionReview, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, conversionPath, bytes.NewReader(body)) //nolint:noctx // not sent
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	buffer := &responseBuffer{header: http.Header{}}
	handler.ServeHTTP(buffer, request)
	response := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(buffer.body.Bytes(), response); err != nil {
		return nil, fmt.Errorf("invalid response: %s", buffer.body.String())
	}
	return response, nil
}

// startConversions takes the conversion webhook of a process. If definitions require one, one of the programs must
// register it.
func (r *run) startConversions(m *processManager) {
	if m.webhooks != nil && m.webhooks.handlers[conversionPath] != nil {
		r.converter = m.webhooks.handlers[conversionPath]
		if r.lessons.converters == nil {
			r.lessons.converters = map[*plan]http.Handler{}
		}
		r.lessons.converters[r.running] = r.converter
		return
	}
	last := m.process.program.index == len(r.running.programs)-1
	if kind := r.running.convertedByWebhook(); last && kind != "" && r.converter == nil && r.running.Setup != nil {
		r.violate(scenarioFailure(fmt.Sprintf(
			"the definition of %s has the conversion strategy Webhook, but Setup registers no webhook at %s", kind,
			conversionPath,
		)))
	}
}

// convertedByWebhook returns a kind whose versions a webhook converts, or "".
func (p *plan) convertedByWebhook() string {
	for _, kind := range p.registry.Kinds() {
		if v := kind.Versions; v != nil && v.Several() && v.Webhook {
			return kind.Kind
		}
	}
	return ""
}

// reportConversions reports a conversion that has failed where no client could receive the error.
func (r *run) reportConversions() {
	if err := r.world.server.FailedConversion(); err != nil && !r.reportedConversion {
		r.reportedConversion = true
		r.violate(Violation{
			Oracle: OracleErrors, Cause: CauseConversion, Message: "an object cannot be converted: " + err.Error(),
		})
	}
}

// shownVersions returns the versions in which kinds are compared and shown in timelines: those that the controller, or
// another part of the scenario, works with.
func (p *plan) shownVersions() map[schema.GroupKind]string {
	var shown map[schema.GroupKind]string
	show := func(kind schema.GroupVersionKind) {
		if k, ok := p.registry.For(kind); !ok || k.Versions == nil || !k.Versions.Several() {
			return
		}
		if shown == nil {
			shown = map[schema.GroupKind]string{}
		}
		if _, found := shown[kind.GroupKind()]; !found {
			shown[kind.GroupKind()] = kind.Version
		}
	}
	show(p.primary)
	for _, program := range p.programs {
		for _, kind := range program.owns {
			show(kind)
		}
		for _, w := range program.watches {
			show(w.kind)
		}
	}
	for _, actor := range p.actors {
		show(actor.kind)
	}
	return shown
}

// isShownAs reports whether a kind is another version of the kind of an event, or the same.
func (w *world) isShownAs(kind schema.GroupVersionKind, e memapi.Event) bool {
	return kind == e.Kind || kind.GroupKind() == e.Kind.GroupKind() && w.severalVersions(kind)
}

func (w *world) severalVersions(kind schema.GroupVersionKind) bool {
	k, ok := w.plan.registry.For(kind)
	return ok && k.Versions != nil && k.Versions.Several()
}

// handles reports whether a webhook is called about a write.
func (h *webhook) handles(r memapi.AdmissionRequest) bool {
	_, ok := h.versionOf(r)
	return ok
}

// versionOf returns the version of a kind for which a webhook is called about a write: that of the request or, with the
// match policy Equivalent, another one.
func (h *webhook) versionOf(r memapi.AdmissionRequest) (*kinds.Kind, bool) {
	if h.matches(r) {
		return r.Kind, true
	}
	if h.exact || r.Kind.Versions == nil || !r.Kind.Versions.Several() {
		return nil, false
	}
	for _, kind := range r.Kind.Versions.All {
		other := r
		if other.Kind = kind; h.matches(other) {
			return kind, true
		}
	}
	return nil, false
}
