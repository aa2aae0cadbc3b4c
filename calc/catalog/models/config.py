"""A Hugging Face `config.json`, of which each number is read once, checked and accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from calc.core.errors import InputError, abbreviated
from calc.core.files import read_text

# What changes no count: names, tokens, training, positions that are computed, activations, caches.
HARMLESS = """
_name_or_path architectures auto_map dtype torch_dtype transformers_version model_type ignore_index
bos_token_id eos_token_id pad_token_id cls_token_id sep_token_id media_placeholder_token_id
image_token_id video_token_id vision_start_token_id vision_end_token_id mtp_use_dedicated_embeddings
id2label label2id initializer_range initializer_cutoff_factor rescale_prenorm_residual
residual_in_fp32 attention_dropout hidden_dropout hidden_dropout_prob attention_probs_dropout_prob
embedding_dropout embd_pdrop resid_pdrop attn_pdrop summary_activation summary_first_dropout
summary_proj_to_labels summary_type summary_use_proj activation_function
mlp_dropout classifier_dropout pretraining_tp seq_aux
router_aux_loss_coef router_jitter_noise output_router_logits aux_loss_alpha ep_size
rms_norm_eps norm_eps layer_norm_eps layer_norm_epsilon hidden_act hidden_activation
classifier_activation decoder_bias classifier_bias classifier_pooling reference_compile
mlp_hidden_act mamba_hidden_act swiglu_limit embedding_multiplier logits_scaling
residual_multiplier attention_multiplier query_pre_attn_scalar attn_logit_softcapping
final_logit_softcapping rope_theta rope_scaling rope_parameters rope_local_base_freq
original_max_position_embeddings initial_context_length partial_rotary_factor rotary_dim
global_rope_theta local_rope_theta position_embedding_type cache_implementation
use_cache num_logits_to_keep use_mamba_kernels mamba_ssm_cache_dtype mamba_ssm_dtype
time_step_min time_step_max time_step_floor time_step_limit time_step_rank expand
norm_topk_prob routed_scaling_factor scoring_func n_group topk_group gradient_checkpointing
length_penalty max_length min_length num_beams num_beam_groups num_return_sequences
repetition_penalty return_dict temperature top_k top_p typical_p use_unified_vision_chunk
video_placeholder use_qk_norm moe_router_dtype moe_shared_expert_overlap indexer_rope_interleave
rope_interleave layernorm_epsilon swa_rope_theta attention_value_scale audio_token_id boa_token_id
boi_token_id eoa_token_id eoa_token_index eoi_token_id use_bidirectional_attention
vision_soft_tokens_per_image vocab_size_per_layer_input index_share_for_mtp_iteration
mtp_hybrid_override_pattern mtp_layers_block_type activation_situ_beta activation_situ_linear_beta
image_placeholder mla_use_nope moe_renormalize moe_router_activation_func num_expert_group
use_grouped_topk output_gate_type
"""
# What changes parameters, or what is kept, where the family does not read it.
CHANGING = """
block_configs cross_attention_layers num_kv_shared_layers moe_latent_size compress_ratios
kv_lora_rank q_lora_rank n_routed_experts n_shared_experts num_experts num_local_experts
moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size index_topk
attention_chunk_size hybrid_override_pattern linear_num_value_heads ssm_state_size mamba_d_state
"""
NOT_COUNTED = {  # what comes on top of the text that is read
    "vision_config": "the encoder of images that it describes",
    "audio_config": "the encoder of sound that it describes",
    "num_nextn_predict_layers": "the module that predicts further tokens",
    "mtp_num_hidden_layers": "the module that predicts further tokens",
    "use_mtp": "the module that predicts further tokens",
}
NESTED = "text_config"  # of models that read images too


MOST, MOST_LAYERS = 10**12, 10_000


class Config:
    """The numbers of a configuration, by name, and which of them were asked for."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._values = _read(path)
        self._asked: set[str] = set()
        text = self._values.get(NESTED)
        if text is not None:
            if not isinstance(text, dict):
                raise self.error(f"{NESTED} must be an object; got {abbreviated(text)}")
            outer = {name: value for name, value in self._values.items() if name != NESTED}
            self._values = outer | text

    def error(self, said: str) -> InputError:
        return InputError(f"{self.path}: {said}")

    def get(self, name: str, default: object = None) -> Any:
        """The value of that name, or the default where it is not there or null."""
        self._asked.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def is_read(self, name: str) -> bool:
        """Whether somebody has asked for it."""
        return name in self._asked

    def count(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number; of layers one that a list of them can have."""
        count = self.get(name, default)
        most = MOST_LAYERS if "layer" in name or name == "first_k_dense_replace" else MOST
        if type(count) is not int or not least <= count <= most:
            beyond = f" and up to {most:,}" if type(count) is int and count > most else ""
            raise self.error(
                f"{name} must be a whole number above {least - 1}{beyond}; got {abbreviated(count)}"
            )
        return count

    def imply(self, name: str, value: Any) -> None:
        """A number that others tell, of a configuration that leaves it out."""
        self._values.setdefault(name, value)

    def counts(self, names: dict[str, str]) -> dict[str, int]:
        """Whole numbers that must be there, under our names."""
        family = self._values.get("model_type")
        if missing := [name for name in names.values() if self._values.get(name) is None]:
            raise self.error(f"a configuration of {family} must have {', '.join(missing)}")
        return {ours: self.count(theirs) for ours, theirs in names.items()}

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self.error(f"{name} must be true or false; got {abbreviated(value)}")
        return value

    def must_be(self, name: str, only: object) -> None:
        """Refuse a number that is read, and changes the answer in ways that are not."""
        value = self.get(name, only)
        if value != only:
            raise self.error(
                f"{name} is read where it is {json.dumps(only)}, and would change the answer; got"
                f" {abbreviated(value)}"
            )

    def kinds(self, name: str, ours: dict[str, str]) -> list[str] | None:
        """The kind of each layer, by our names, where they are listed."""
        given, layers = self.get(name), self.count("num_hidden_layers")
        if given is None:
            return None
        listed = list(given) if isinstance(given, (list, str)) else []
        if len(listed) != layers or not {*map(str, listed)} <= {*ours}:
            raise self.error(
                f"{name} must list {' or '.join(sorted(ours))} for each of its {layers} layers; got"
                f" {abbreviated(given)}"
            )
        return [ours[str(kind)] for kind in listed]

    def notes(self) -> Iterator[str]:
        """What is there and is not counted; what would change the answer is refused."""
        left = {
            name: value
            for name, value in self._values.items()
            if name not in self._asked
            and name not in HARMLESS.split()
            and value not in (None, False, 0, "", [], {})
        }
        for name in left:
            if name in CHANGING.split():
                raise self.error(
                    f"{name} is not read, and would change the answer: describe the model by"
                    " models.from_shape"
                )
        for name, what in NOT_COUNTED.items():
            if left.pop(name, None):
                yield f"{what} ({name}) is not counted"
        if (quantized := left.pop("quantization_config", None)) is not None:
            method = quantized.get("quant_method") if isinstance(quantized, dict) else quantized
            yield (
                f"its quantization_config ({abbreviated(method)}) is not counted: the format of the"
                ' weights is what the caller says, as in weights="fp8" or'
                ' "experts=mxfp4,others=bf16"'
            )
        if left:
            named = ", ".join(sorted(left))
            yield f"its configuration has what is unknown here, and not counted: {named}"


def _read(path: str | Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        config = json.loads(text, object_pairs_hook=partial(_once_each, path))
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise InputError(
            f"{path}: must hold a JSON object, as config.json does; got {abbreviated(config)}"
        )
    return config


def _once_each(path: str | Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: JSON itself would keep the last of equal ones."""
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path}: {twice[0]} is there {names.count(twice[0])} times")
    return dict(pairs)
