// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/finding"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

// Webhook is a webhook that the API server calls.
type Webhook struct {
	Name, Path      string
	Mutating        bool
	IgnoresFailures bool
	// Exact is set for the match policy Exact.
	Exact      bool
	Rules      []admissionregistrationv1.RuleWithOperations
	Objects    labels.Selector
	Namespaces labels.Selector
	// process and handler are set in a process.
	process *Process
	handler http.Handler
}

// webhookServer is the webhook server of a manager. It keeps what is registered.
type webhookServer struct {
	ctrlwebhook.Server

	handlers map[string]http.Handler
	// paths are the keys of handlers, in the order of their registration.
	paths []string
}

// Register registers a webhook.
func (s *webhookServer) Register(path string, handler http.Handler) {
	s.Server.Register(path, handler)
	s.handlers[path] = handler
	s.paths = append(s.paths, path)
}

// GetWebhookServer returns a server whose webhooks the API server in memory calls.
func (m *processManager) GetWebhookServer() ctrlwebhook.Server {
	if m.webhooks == nil {
		m.webhooks = &webhookServer{
			Server: ctrlwebhook.NewServer(ctrlwebhook.Options{}), handlers: map[string]http.Handler{},
		}
	}
	return m.webhooks
}

// startWebhooks lets the API server call the webhooks that a process has registered.
func (r *run) startWebhooks(m *processManager) {
	var unknown []string
	m.process.webhooks, unknown = r.versions.running.webhooksOf(m.process, m.webhooks)
	if r.machine.Judged.Records {
		if r.lessons.Uncalled == nil {
			r.lessons.Uncalled = map[*Program][]string{}
		}
		r.lessons.Uncalled[m.process.program] = unknown
	}
	r.conversions.start(m)
}

// webhooksOf returns the webhooks of a server: those that the configurations of the scenario name and, at the paths of
// builders, the webhooks of one kind. It also returns the paths that remain.
func (v *Version) webhooksOf(process *Process, server *webhookServer) (found []Webhook, unknown []string) {
	if server == nil {
		return nil, nil
	}
	for _, path := range server.paths {
		hooks := slices.DeleteFunc(slices.Clone(process.program.Webhooks), func(h Webhook) bool { return h.Path != path })
		if len(hooks) == 0 && path != conversionPath {
			if h, ok := v.defaultWebhook(path); ok {
				hooks = append(hooks, h)
			} else {
				unknown = append(unknown, path)
			}
		}
		for _, h := range hooks {
			h.process, h.handler = process, server.handlers[path]
			found = append(found, h)
		}
	}
	return found, unknown
}

// defaultWebhook returns the webhook at a path of the form that builders of controller-runtime use. It is called when
// objects are created and updated, as the markers of kubebuilder have it.
func (v *Version) defaultWebhook(path string) (Webhook, bool) {
	for _, kind := range v.Registry.Kinds() {
		suffix := "-" + strings.ReplaceAll(kind.Group, ".", "-") + "-" + kind.Version + "-" + strings.ToLower(kind.Kind)
		for prefix, mutating := range map[string]bool{"/mutate": true, "/validate": false} {
			if path == prefix+suffix {
				return Webhook{
					Name: path[1:2] + strings.ToLower(kind.Kind) + "-" + kind.Version + ".kb.io", Path: path, Mutating: mutating,
					Rules:   []admissionregistrationv1.RuleWithOperations{ruleFor(kind)},
					Objects: labels.Everything(), Namespaces: labels.Everything(),
				}, true
			}
		}
	}
	return Webhook{}, false
}

func ruleFor(kind *kinds.Kind) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update,
		},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{kind.Group}, APIVersions: []string{kind.Version}, Resources: []string{kind.Plural},
		},
	}
}

// matches reports whether a rule of a webhook is about a write.
func (h *Webhook) matches(r memapi.AdmissionRequest) bool {
	resource := r.Kind.Plural
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return slices.ContainsFunc(h.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
			return o == admissionregistrationv1.OperationAll || string(o) == string(r.Operation)
		}) && access.OneOf(rule.APIGroups, r.Kind.Group) && access.OneOf(rule.APIVersions, r.Kind.Version) &&
			slices.ContainsFunc(rule.Resources, func(pattern string) bool { return matchesResource(pattern, resource) })
	})
}

// matchesResource reports whether a resource matches a pattern of a rule: "*" is all resources, "*/*" also their
// subresources, "pods/*" the subresources of pods, and "*/scale" all scale subresources.
func matchesResource(pattern, resource string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	wantName, wantSub, hasSub := strings.Cut(pattern, "/")
	switch {
	case wantName != "*" && wantName != name:
		return false
	case !hasSub:
		return sub == ""
	}
	return wantSub == "*" && (sub != "" || wantName == "*") || wantSub == sub && sub != ""
}

// selects reports whether the selectors of a webhook select a write.
func (h Webhook) selects(r memapi.AdmissionRequest, server *memapi.Server) bool {
	if !h.Objects.Empty() &&
		!h.Objects.Matches(labelsIn(r.Object)) && !h.Objects.Matches(labelsIn(r.OldObject)) {
		return false
	}
	if h.Namespaces.Empty() || r.Key.Namespace == "" {
		return true
	}
	namespace := server.Get(corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: r.Key.Namespace})
	return namespace != nil && h.Namespaces.Matches(labels.Set(namespace.GetLabels()))
}

func labelsIn(object []byte) labels.Set {
	var partial metav1.PartialObjectMetadata
	if json.Unmarshal(object, &partial) != nil {
		return nil
	}
	return partial.Labels
}

// failed returns the error of the API server if it cannot call a webhook.
func (h Webhook) failed(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.Name, err))
}

// denied returns the error of the API server if a webhook refuses a write.
// (k8s.io/apiserver, pkg/admission/plugin/webhook/errors/statuserror.go)
func (h Webhook) denied(result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Status, status.Code = metav1.StatusFailure, max(status.Code, http.StatusBadRequest)
	message := fmt.Sprintf("admission webhook %q denied the request", h.Name)
	switch {
	case status.Message != "":
		message += ": " + status.Message
	case status.Reason != "":
		message += ": " + string(status.Reason)
	default:
		message += " without explanation"
	}
	status.Message = message
	return &apierrors.StatusError{ErrStatus: status}
}

// handles reports whether a webhook is called about a write.
func (h *Webhook) handles(r memapi.AdmissionRequest) bool {
	_, ok := h.versionOf(r)
	return ok
}

// versionOf returns the version of a kind for which a webhook is called about a write: the version of the request or,
// with the match policy Equivalent, another one.
func (h *Webhook) versionOf(r memapi.AdmissionRequest) (*kinds.Kind, bool) {
	if h.matches(r) {
		return r.Kind, true
	}
	if h.Exact || r.Kind.Versions == nil || !r.Kind.Versions.Several() {
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

// conversionPath is the path of the webhook that converts versions. It is the path of the builders of
// controller-runtime.
const conversionPath = "/convert"

// conversions converts objects between the versions of their kinds.
type conversions struct {
	*scene

	versions *versions
	// registered is the conversion webhook that was registered last, by whatever version.
	registered http.Handler
	// reported is set when a failed conversion was reported.
	reported bool
}

// convert calls the conversion webhook that the version that runs registered last, in this run or in an earlier one:
// the caches of a process may need it before its set-up has ended. If it has registered none, the one of an older
// version remains.
func (s *conversions) convert(review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	running := s.versions.running
	own := s.lessons.Converters[running]
	if own == nil && running.Converter == nil {
		own = s.registered
	}
	if own != nil {
		return convert(own, review)
	}
	return running.Convert(review)
}

// Convert calls the conversion webhook that was registered last in earlier runs. Until one is registered, the types of
// the scheme convert, as with the usual webhook.
func (v *Version) Convert(review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	if v.Converter != nil {
		return convert(v.Converter, review)
	}
	return convert(v.UsualConverter(), review)
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
	buffer := httptest.NewRecorder()
	handler.ServeHTTP(buffer, request)
	response := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(buffer.Body.Bytes(), response); err != nil {
		return nil, fmt.Errorf("invalid response: %s", buffer.Body.String())
	}
	return response, nil
}

// start takes the conversion webhook of a process. If definitions require one, one of the programs must register it.
func (s *conversions) start(m *processManager) {
	running := s.versions.running
	if m.webhooks != nil && m.webhooks.handlers[conversionPath] != nil {
		s.registered = m.webhooks.handlers[conversionPath]
		if s.lessons.Converters == nil {
			s.lessons.Converters = map[*Version]http.Handler{}
		}
		s.lessons.Converters[running] = s.registered
		return
	}
	last := m.process.program.Index == len(running.Programs)-1
	kind, first := running.convertedByWebhook(), running.Programs[0]
	if last && kind != "" && s.registered == nil && first.Setup != nil {
		s.verdict.Violate(finding.ScenarioFailure(fmt.Sprintf(
			"the definition of %s has the conversion strategy Webhook, but Setup registers no webhook at %s", kind,
			conversionPath,
		)))
	}
}

// convertedByWebhook returns a kind whose versions a webhook converts, or "".
func (v *Version) convertedByWebhook() string {
	for _, kind := range v.Registry.Kinds() {
		if several := kind.Versions; several != nil && several.Several() && several.Webhook {
			return kind.Kind
		}
	}
	return ""
}

// report reports a conversion that has failed where no client could receive the error.
func (s *conversions) report() {
	if err := s.world.Server.FailedConversion(); err != nil && !s.reported {
		s.reported = true
		s.verdict.Violate(finding.Violation{
			Oracle: finding.OracleErrors, Cause: finding.CauseConversion,
			Message: "an object cannot be converted: " + err.Error(),
		})
	}
}
