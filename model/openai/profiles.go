package openai

// Models of OpenAI that reason (they want the role developer), that see images, and that speak the Responses API alone.
// The last are those that openai 3.57.0 names for that API and not for Chat Completions, and those to which litellm 1.110.2
// gives no other endpoint (both 2026-11-30); what is newer is learned from its refusal.
var (
	openaiReasons   = []string{"o1", "o3", "o4", "gpt-5", "gpt-6"}
	openaiSees      = []string{"gpt-4o", "chatgpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "o1", "o3", "o4-mini"}
	openaiResponses = []string{"o1-pro", "o3-pro", "o3-deep-research", "o4-mini-deep-research", "codex-", "computer-use-preview",
		"gpt-5-pro", "gpt-5-codex", "gpt-5.1-codex", "gpt-5.2-pro", "gpt-5.2-codex", "gpt-5.3-codex", "gpt-5.4-pro", "gpt-5.5-pro", "gpt-daybreak"}
)

const openaiCached = "prompt_tokens_details.cached_tokens"

// profiles are the known providers. Nothing in the code asks for a provider by its name. Each was checked on 2026-11-30
// against what its Source names; versions are those of the vendors' packages on PyPI and npm, whose types are generated
// from their APIs. Which models see images is litellm 1.110.2's supports_vision. What a Source doesn't speak of could not be
// looked up and is as other clients have it; a server that wants it otherwise teaches it by its refusal.
var profiles = []Profile{
	{
		Name: "openai", Hosts: []string{"api.openai.com"},
		Source:    "openai 3.57.0: max_tokens is deprecated and not taken by o-series models; models by API",
		MaxTokens: "max_completion_tokens", Forced: true, Parallel: true, Strict: true,
		Images: ImagesURL, Sees: openaiSees, Developer: openaiReasons, Responses: openaiResponses,
		Window: []WindowWay{WindowTable}, Count: []CountWay{CountInputTokens}, Cached: openaiCached,
	},
	{
		Name: "azure", Hosts: []string{"openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"},
		Source: "learn.microsoft.com/azure/ai-services/openai/reference: 2024-10-21 is the last GA version with a date; /openai/v1 needs none",
		Base:   "/openai/deployments/{model}", Deployments: "api-version=2024-10-21", KeyHeader: "api-key",
		// The GA version knows max_tokens alone; a reasoning model's refusal teaches the newer name.
		MaxTokens: "max_tokens", Forced: true, Parallel: true, Strict: true,
		Images: ImagesURL, Sees: openaiSees, Developer: openaiReasons,
		Window: []WindowWay{WindowTable}, Cached: openaiCached,
	},
	{
		Name: "openrouter", Hosts: []string{"openrouter.ai"},
		Source:  "@openrouter/sdk 1.3.19: max_tokens is deprecated; reasoning_details are a field of an assistant's message; models tell contextLength",
		Base:    "/api/v1",
		Headers: map[string]string{"X-Title": "memgpt"},
		// Whether a forced choice is obeyed depends on who serves the model.
		MaxTokens: "max_completion_tokens", Parallel: true,
		Images: ImagesURL, Sees: append([]string{"claude-", "gemini-", "grok-4"}, openaiSees...),
		Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_details", ReasoningBack: ReasoningAlways, TellsCost: true,
	},
	{
		Name: "deepseek", Hosts: []string{"api.deepseek.com"},
		Source:    "@ai-sdk/deepseek 2.0.69 and litellm 1.110.2 after api-docs.deepseek.com/guides/thinking_mode: V4 thinks by default and wants reasoning_content with each assistant's message, else 400; prompt_cache_hit_tokens",
		MaxTokens: "max_tokens", NoForce: true, Parallel: true, // a forced choice is refused while the model thinks, as it does by default
		Images: ImagesURL, Sees: []string{"deepseek-flash", "deepseek-v4-flash"},
		Window: []WindowWay{WindowTable}, Cached: "prompt_cache_hit_tokens",
		Reasoning: "reasoning_content", ReasoningBack: ReasoningEvery,
	},
	{
		Name: "groq", Hosts: []string{"api.groq.com"},
		Source:    "groq 1.7.0: max_tokens is deprecated; choices none, auto, required; reasoning; x_groq.usage; prompt_tokens_details",
		Base:      "/openai/v1",
		MaxTokens: "max_completion_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Sees: []string{"qwen3.8"},
		Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning",
	},
	{
		Name: "together", Hosts: []string{"api.together.xyz", "api.together.ai"},
		Source:    "together 3.1.1: max_tokens; reasoning, and reasoning_content in older answers; its usage names no cached tokens (cached_tokens is read where it comes)",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Sees: []string{"kimi-k3", "qwen3.5-9b", "glm-5.3-flash"},
		Window: []WindowWay{WindowModels, WindowTable}, Cached: "cached_tokens",
		Reasoning: "reasoning",
	},
	{
		Name: "mistral", Hosts: []string{"api.mistral.ai"},
		Source:    "mistralai 3.7.0: max_tokens, any (required too), no stream_options, max_context_length in the list; @ai-sdk/mistral 3.0.69: usage; refusals 3230 (order of roles) and 3280 (form of ids) as many clients report them",
		MaxTokens: "max_tokens", Required: "any", Forced: true, Parallel: true, NoStreamUsage: true,
		Images: ImagesURL, Sees: []string{"pixtral", "mistral-small", "mistral-medium", "mistral-large", "ministral", "magistral"},
		Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "content[].thinking", ShortIDs: true, AfterResult: true, NoEmptyMessages: true,
	},
	{
		Name: "xai", Hosts: []string{"api.x.ai"},
		Source:    "@ai-sdk/xai 3.0.138: max_completion_tokens, stream_options, reasoning_content; docs.x.ai, prompt caching: cached tokens; \"each message must have at least one content element\" as clients report it (2025-11)",
		MaxTokens: "max_completion_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Sees: []string{"grok-4", "grok-code", "grok-build"},
		Window: []WindowWay{WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_content", EmptyCallText: true, NoEmptyMessages: true,
	},
	{
		Name: "gemini", Hosts: []string{"generativelanguage.googleapis.com"},
		// What the compatible endpoint carries, see "Gemini" in ARCHITECTURE.md: function calls whole, without an index in
		// streams; the signature of the first call of a reply in extra_content of the call, that of a reply without calls in
		// extra_content of the message, in streams in the delta. Thoughts come as words only where they are asked for.
		Source:    "ai.google.dev/gemini-api/docs/openai and /docs/thought-signatures; @ai-sdk/openai-compatible 2.0.92: extra_content of calls; litellm 1.110.2: a signature of another account is refused",
		Base:      "/v1beta/openai",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesData, Sees: []string{"gemini-"},
		Window: []WindowWay{WindowTable}, Cached: openaiCached,
		Reasoning: "<think>", Signed: true, // or <thought>
	},
	{
		Name: "vllm", Hosts: []string{":8000"},
		Source:    "docs.vllm.ai v0.11.2, reasoning outputs: reasoning used to be called reasoning_content",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Window: []WindowWay{WindowModels, WindowTable}, Count: []CountWay{CountTokenize}, Cached: openaiCached,
		Reasoning: "reasoning",
	},
	{
		Name: "sglang", Hosts: []string{":30000"},
		Source:    "docs.sglang.io: OpenAI APIs (Chat Completions as a whole), separate reasoning",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_content",
	},
	{
		Name: "lmstudio", Hosts: []string{":1234"},
		Source:    "lmstudio.ai/docs/developer/rest/endpoints: v0 tells of loaded models; a v1 of its own came with 0.4.0 beside it",
		MaxTokens: "max_tokens", Parallel: true, // "required" depends on the engine
		Images: ImagesData, Window: []WindowWay{WindowStudio, WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_content",
	},
	{
		Name: "llamacpp", Hosts: []string{":8080"},
		Source:    "github.com/ggml-org/llama.cpp, tools/server/README.md, and recordings of its server b11549 of 2026-11-29",
		MaxTokens: "max_tokens", Parallel: true, // "required" lets text come first, which can use the reply up
		Images: ImagesURL, Window: []WindowWay{WindowModels, WindowProps, WindowTable},
		Count: []CountWay{CountInputTokens, CountTemplate}, Cached: openaiCached,
		Reasoning: "reasoning_content",
	},
	{
		Name: "ollama", Hosts: []string{":11434", "ollama.com"},
		Source:    "docs.ollama.com/api/openai-compatibility: max_tokens, stream_options, images as base64 (newer versions take addresses)",
		MaxTokens: "max_tokens", Parallel: true, // a choice is taken and not enforced
		Images: ImagesData, Window: []WindowWay{WindowModels, WindowOllama, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning",
	},
}
