package app

import (
	"encoding/json"
	"strings"

	"github.com/grafana/grafana-app-sdk/k8s"

	v1 "example.com/links/pkg/generated/link/v1"
	v2 "example.com/links/pkg/generated/link/v2"
)

// Converter converts links: url in v1 is target in v2.
type Converter struct{}

func (Converter) Convert(obj k8s.RawKind, targetAPIVersion string) ([]byte, error) {
	if obj.APIVersion == targetAPIVersion {
		return obj.Raw, nil
	}
	if strings.HasSuffix(targetAPIVersion, "/v2") {
		old, converted := v1.NewLink(), v2.NewLink()
		if err := json.Unmarshal(obj.Raw, old); err != nil {
			return nil, err
		}
		converted.ObjectMeta = old.ObjectMeta
		converted.Spec = v2.LinkSpec{Target: old.Spec.URL, Tags: old.Spec.Tags}
		converted.Status = v2.LinkStatus{Seen: old.Status.Seen}
		converted.SetGroupVersionKind(v2.LinkKind().GroupVersionKind())
		return json.Marshal(converted)
	}
	old, converted := v2.NewLink(), v1.NewLink()
	if err := json.Unmarshal(obj.Raw, old); err != nil {
		return nil, err
	}
	converted.ObjectMeta = old.ObjectMeta
	converted.Spec = v1.LinkSpec{URL: old.Spec.Target, Tags: old.Spec.Tags}
	converted.Status = v1.LinkStatus{Seen: old.Status.Seen}
	converted.SetGroupVersionKind(v1.LinkKind().GroupVersionKind())
	return json.Marshal(converted)
}
