// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteChildren deletes a ConfigMap and the Service of a site, and shows that the controller creates them again.
func (d *demo) deleteChildren(ctx context.Context) error {
	key := d.sites[0]
	d.Step("Delete two children of %s", d.label(key))
	before, err := d.view(ctx, d.client, key)
	if err != nil {
		return err
	}
	if before == nil || before.pending() != "" {
		return fmt.Errorf("the Website %s is no longer ready", d.label(key))
	}
	victim := before.configMaps[0]
	for _, child := range []client.Object{&victim, before.service} {
		if err := d.client.Delete(ctx, child.DeepCopyObject().(client.Object)); err != nil {
			return err
		}
	}
	d.Progress("deleted ConfigMap %s (uid %s) and Service %s (uid %s)",
		victim.Name, short(victim.UID), before.service.Name, short(before.service.UID))

	var after *view
	var returned corev1.ConfigMap
	err = d.observer.await(ctx, d.timeout, func(ctx context.Context) (string, error) {
		if after, err = d.view(ctx, d.observer, key); err != nil {
			return "", err
		}
		if after == nil {
			return fmt.Sprintf("Website %s no longer exists", d.label(key)), nil
		}
		i := slices.IndexFunc(
			after.configMaps, func(c corev1.ConfigMap) bool { return c.Name == victim.Name && c.UID != victim.UID },
		)
		if i < 0 {
			return fmt.Sprintf("ConfigMap %s was not created again", victim.Name), nil
		}
		returned = after.configMaps[i]
		if after.service == nil || after.service.UID == before.service.UID {
			return fmt.Sprintf("Service %s was not created again", before.service.Name), nil
		}
		return after.pending(), nil
	})
	if err != nil {
		return err
	}
	if !maps.Equal(returned.Data, victim.Data) {
		return fmt.Errorf("the ConfigMap %s was created again with different content", victim.Name)
	}
	d.Done("ConfigMap %s was created again (uid %s) with the same content", returned.Name, short(returned.UID))
	d.Done("Service %s was created again (uid %s), and %s resolves to its address %s",
		after.service.Name, short(after.service.UID), after.record.Name, after.record.Target)
	return nil
}
