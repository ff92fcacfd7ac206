package anthropic

import (
	"context"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
)

// Listed is a model that the API lists.
type Listed struct {
	Name   string
	Window int // tokens; 0 when unknown
}

// List returns the models of the account, the newest first. It generates nothing and costs nothing.
func (m *Model) List(ctx context.Context) ([]Listed, error) {
	page, err := m.client.Models.List(ctx, sdk.ModelListParams{Limit: sdk.Int(listLimit)})
	if err != nil {
		return nil, m.lookFault(err)
	}
	var models []Listed
	for i := range page.Data {
		l := Listed{Name: page.Data[i].ID, Window: int(page.Data[i].MaxInputTokens)}
		if l.Window == 0 {
			l.Window = knownModel(l.Name).window
		}
		models = append(models, l)
	}
	return models, nil
}

// listLimit is the most that the API lists in a page, which is more than there are models.
const listLimit = 1000
