package watchers

import (
	"context"
	"fmt"

	"github.com/grafana/grafana-app-sdk/logging"
	"github.com/grafana/grafana-app-sdk/operator"
	"github.com/grafana/grafana-app-sdk/resource"

	v2 "example.com/links/pkg/generated/link/v2"
)

var _ operator.ResourceWatcher = &LinkWatcher{}

// LinkWatcher copies the target to the status.
type LinkWatcher struct {
	store *resource.TypedStore[*v2.Link]
}

func NewLinkWatcher(store *resource.TypedStore[*v2.Link]) *LinkWatcher {
	return &LinkWatcher{store: store}
}

func (s *LinkWatcher) Add(ctx context.Context, rObj resource.Object) error {
	object, ok := rObj.(*v2.Link)
	if !ok {
		return fmt.Errorf("not a *v2.Link (name=%s, namespace=%s, kind=%s)",
			rObj.GetStaticMetadata().Name, rObj.GetStaticMetadata().Namespace, rObj.GetStaticMetadata().Kind)
	}
	logging.FromContext(ctx).Info("Added", "name", object.GetStaticMetadata().Identifier().Name)
	object.Status.Seen = object.Spec.Target
	_, err := s.store.UpdateSubresource(ctx, object.GetStaticMetadata().Identifier(), resource.SubresourceStatus, object)
	return err
}

func (s *LinkWatcher) Update(ctx context.Context, _ resource.Object, rNew resource.Object) error {
	return s.Add(ctx, rNew)
}

func (s *LinkWatcher) Delete(ctx context.Context, rObj resource.Object) error {
	logging.FromContext(ctx).Info("Deleted", "name", rObj.GetStaticMetadata().Name)
	return nil
}

func (s *LinkWatcher) Sync(ctx context.Context, rObj resource.Object) error { return s.Add(ctx, rObj) }
